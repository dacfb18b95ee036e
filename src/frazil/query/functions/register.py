"""What our SQL can do beyond the engine's: functions over batches, which let go of the GIL.

matches(body, 'payment AND (timeout OR refused)')   full text, see words.py
get_json_object(body, '$.user.id')                  a value in JSON, see json_path.py
now(), current_timestamp, current_date, today()     the moment the query began, by our clock
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Protocol

import pyarrow as pa
import pyarrow.compute as pc
from datafusion import ScalarUDF, udf

from frazil.errors import FrazilError, TooLarge
from frazil.query.functions.string_buffers import buffers_of

TIME = pa.timestamp("us", tz="UTC")
US_PER_DAY = 86_400_000_000
DISTINCT_MAX = 64
"""Searches, paths and keys in one batch of rows, when they come from a column."""


class QueryContext(Protocol):
    """What functions know of the query they work for, and what they leave behind."""

    moment_us: int
    """When the query began."""
    error: FrazilError | None
    """What a function has to say about its arguments; the engine would garble it. Once there is
    something, no function works any more."""


class SingleQueryContext:
    """The scene of a session that serves one query."""

    def __init__(self, moment_us: int) -> None:
        self.moment_us = moment_us
        self.error: FrazilError | None = None


class SharedQueryContext(threading.local):
    """The scene of a session that plans for everybody: each thread sees its own query."""

    moment_us: int = 0
    error: FrazilError | None = None


def functions(scene: QueryContext) -> list[ScalarUDF]:
    """Our functions, for a session with this scene."""
    text = pa.string()
    # Stable and immutable functions of constants are worked out while planning: this is how the
    # bounds of `time > now() - INTERVAL '5 minutes'` are known before anything is read.
    return [
        _udf("matches", _matches, [text, text], pa.bool_(), scene),
        _udf("get_json_object", _json_values, [text, text], text, scene),
        *(udf(lambda: _moment(scene), [], TIME, "stable", name) for name in _NOW),
        *(udf(lambda: _day(scene), [], pa.date32(), "stable", name) for name in _TODAY),
    ]


_NOW = ("now", "current_timestamp")
_TODAY = ("current_date", "today")


def _moment(scene: QueryContext) -> pa.Array:
    return pa.array([scene.moment_us], TIME)


def _day(scene: QueryContext) -> pa.Array:
    return pa.array([scene.moment_us // US_PER_DAY], pa.date32())


def _udf(
    name: str,
    work: Callable[[pa.Array, str], pa.Array],
    given: list[pa.DataType],
    returned: pa.DataType,
    scene: QueryContext,
) -> ScalarUDF:
    def run(column: pa.Array, argument: pa.Array) -> pa.Array:
        if scene.error is not None:
            raise scene.error
        try:
            return _for_each(name, work, column, argument, returned)
        except FrazilError as error:
            scene.error = error
            raise

    return udf(run, given, returned, "immutable", name)


def _for_each(
    name: str,
    work: Callable[[pa.Array, str], pa.Array],
    column: pa.Array,
    argument: pa.Array,
    returned: pa.DataType,
) -> pa.Array:
    """Work on a column with an argument that is the same in every row, or nearly so."""
    if len(column) == 0:
        return pa.nulls(0, returned)
    if argument.null_count == len(argument):
        return pa.nulls(len(column), returned)
    if _is_constant(argument):
        return work(column, argument[0].as_py())
    distinct = pc.unique(argument.drop_null())
    if len(distinct) > DISTINCT_MAX:
        raise TooLarge(
            f"{name} has {len(distinct)} different second arguments; write one, or at most "
            f"{DISTINCT_MAX}"
        )
    answer = pa.nulls(len(column), returned)
    for value in distinct:
        is_mine = pc.equal(argument, value).fill_null(False)
        answer = pc.if_else(is_mine, work(column, value.as_py()), answer)
    return answer


def _is_constant(argument: pa.StringArray) -> bool:
    """Is the same text in every row? A constant of a query comes as a column of its copies, so
    this is asked for every batch: copies lie one behind the other, and are compared as a whole."""
    if argument.null_count:
        return False
    offsets, letters = buffers_of(argument)
    length = offsets[1] - offsets[0]
    if offsets[-1] - offsets[0] != length * len(argument):
        return False
    whole = letters[offsets[0] : offsets[-1]].tobytes()
    is_even = (offsets[1:] - offsets[:-1] == length).all()
    return bool(is_even) and whole == whole[:length] * len(argument)


# The compiled parts are loaded by the first query that uses them, not by everybody who starts.
def _matches(column: pa.Array, search: str) -> pa.Array:
    from frazil.query.functions.text_scan import found_in
    from frazil.query.functions.text_search import parse

    return found_in(column, parse(search))


def _json_values(column: pa.Array, path: str) -> pa.Array:
    from frazil.query.functions.json_path import parse_path, values_at

    return values_at(column, parse_path(path))


def warm() -> None:
    """Compile the functions, or load them from disk."""
    texts = pa.array(['{"a": ["b"]}', "é"])
    _matches(texts, "a")
    _json_values(texts, "$.a[0]")
