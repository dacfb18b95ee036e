"""Our SQL functions. They work on batches and release the GIL.

matches(body, 'payment AND (timeout OR refused)')   full text, see text_search.py
get_json_object(body, '$.user.id')                  a value in JSON, see json_path.py
matches_regex(body, 'time[d]? out')                 a regular expression of RE2
label_value(attributes, 'http_route')               a value by its label, see label_names.py
now(), current_timestamp, current_date, today()     the start of the query, by our clock
hash_maps(attributes, resource_attributes)          equal for equal maps, see map_hash.py
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import pyarrow as pa
import pyarrow.compute as pc
from datafusion import ScalarUDF, udf

from frazil.errors import FrazilError, Malformed, TooLarge
from frazil.model.arrow import LOGS, METRICS
from frazil.query.functions.string_buffers import buffers_of

TIME = pa.timestamp("us", tz="UTC")
HASH = pa.binary(16)
ATTRIBUTES = LOGS.field("attributes").type
US_PER_DAY = 86_400_000_000
DISTINCT_MAX = 64
"""Distinct searches or paths in one batch, if they come from a column."""


class QueryContext(Protocol):
    """The state that functions share with their query."""

    now_us: int
    """When the query started."""
    error: FrazilError | None
    """The error of a function, which DataFusion would garble. Once set, all functions raise it."""


class SingleQueryContext:
    """The context of a session that runs one query."""

    def __init__(self, now_us: int) -> None:
        self.now_us = now_us
        self.error: FrazilError | None = None


def functions(context: QueryContext) -> list[ScalarUDF]:
    """Return our functions for a session with this context."""
    text = pa.string()
    maps = METRICS.field("attributes").type
    # DataFusion folds stable and immutable functions of constants while it plans: so the bounds of
    # `time > now() - INTERVAL '5 minutes'` are known before rows are read.
    return [
        _udf("matches", _matches, [text, text], pa.bool_(), context),
        _udf("get_json_object", _json_values, [text, text], text, context),
        udf(_map_hashes, [maps, maps], HASH, "immutable", "hash_maps"),
        _udf("matches_regex", _matches_regex, [text, text], pa.bool_(), context),
        _udf("label_value", _label_values, [ATTRIBUTES, text], text, context),
        *(udf(lambda: _now(context), [], TIME, "stable", name) for name in _NOW_NAMES),
        *(udf(lambda: _today(context), [], pa.date32(), "stable", name) for name in _TODAY_NAMES),
    ]


_NOW_NAMES = ("now", "current_timestamp")
_TODAY_NAMES = ("current_date", "today")


def _now(context: QueryContext) -> pa.Array:
    return pa.array([context.now_us], TIME)


def _today(context: QueryContext) -> pa.Array:
    return pa.array([context.now_us // US_PER_DAY], pa.date32())


def _udf(
    name: str,
    work: Callable[[pa.Array, str], pa.Array],
    arguments: list[pa.DataType],
    returned: pa.DataType,
    context: QueryContext,
) -> ScalarUDF:
    def run(column: pa.Array, argument: pa.Array) -> pa.Array:
        if context.error is not None:
            raise context.error
        try:
            return _for_each(name, work, column, argument, returned)
        except FrazilError as error:
            context.error = error
            raise

    return udf(run, arguments, returned, "immutable", name)


def _for_each(
    name: str,
    work: Callable[[pa.Array, str], pa.Array],
    column: pa.Array,
    argument: pa.Array,
    returned: pa.DataType,
) -> pa.Array:
    """Apply `work` to a column, once per distinct argument."""
    if len(column) == 0:
        return pa.nulls(0, returned)
    if argument.null_count == len(argument):
        return pa.nulls(len(column), returned)
    if _is_constant(argument):
        return work(column, argument[0].as_py())
    distinct = pc.unique(argument.drop_null())
    if len(distinct) > DISTINCT_MAX:
        raise TooLarge(
            f"{name} has {len(distinct)} distinct second arguments in one batch of rows; use at "
            f"most {DISTINCT_MAX}"
        )
    values = pa.nulls(len(column), returned)
    for value in distinct:
        is_equal = pc.equal(argument, value).fill_null(False)
        values = pc.if_else(is_equal, work(column, value.as_py()), values)
    return values


def _is_constant(argument: pa.StringArray) -> bool:
    """Return whether all rows are equal. A constant comes as a column of copies in every batch, so
    this compares all bytes at once."""
    if argument.null_count:
        return False
    offsets, letters = buffers_of(argument)
    length = offsets[1] - offsets[0]
    if offsets[-1] - offsets[0] != length * len(argument):
        return False
    whole = letters[offsets[0] : offsets[-1]].tobytes()
    is_even = (offsets[1:] - offsets[:-1] == length).all()
    return bool(is_even) and whole == whole[:length] * len(argument)


# Imported by the first query that needs them: loading compiled code takes time.
def _matches(column: pa.Array, search: str) -> pa.Array:
    from frazil.query.functions.text_scan import match_column
    from frazil.query.functions.text_search import parse

    return match_column(column, parse(search))


def _json_values(column: pa.Array, path: str) -> pa.Array:
    from frazil.query.functions.json_path import parse_path, values_at

    return values_at(column, parse_path(path))


def _map_hashes(one: pa.MapArray, other: pa.MapArray) -> pa.Array:
    from frazil.query.functions.map_hash import hash_maps

    return hash_maps(one, other)


def _matches_regex(column: pa.Array, pattern: str) -> pa.Array:
    try:
        return pc.match_substring_regex(column, pattern)
    except pa.ArrowInvalid as error:
        raise Malformed(f"the regular expression {pattern!r} is invalid: {error}") from None


def _label_values(maps: pa.Array, name: str) -> pa.Array:
    from frazil.query.functions.label_names import values_by_label

    return values_by_label(maps, name)


def warm_functions() -> None:
    """Compile the functions, or load them from the cache on disk."""
    maps = pa.array([[("a", "b")]], METRICS.field("attributes").type)
    _map_hashes(maps, maps)
    texts = pa.array(['{"a": ["b"]}', "é"])
    _matches(texts, "a")
    _json_values(texts, "$.a[0]")
    _label_values(pa.array([[("a.b", "c")]], ATTRIBUTES), "a_b")
