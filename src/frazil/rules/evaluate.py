"""RuleQueries: runs the query of a rule, in PromQL or SQL, as of a time."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any, Protocol

import pyarrow as pa

from frazil.errors import Malformed, TooLarge
from frazil.results import CancelToken, Limits, Result
from frazil.rules.files.model import RuleQuery
from frazil.rules.samples import LabelPairs, RuleSample, label_pairs
from frazil.rules.sql_text import bound_sql

VALUE = "value"
LABEL_COLUMN = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")

RunSql = Callable[[str, Limits, CancelToken], Result]


class RunPromql(Protocol):
    """Runs PromQL. `PromqlRows` implements it."""

    def __call__(
        self, text: str, at_ms: int, limits: Limits, cancel_token: CancelToken
    ) -> Iterable[RuleSample]: ...

    def over_time(
        self,
        text: str,
        times_ms: Sequence[int],
        step_ms: int,
        limits: Limits,
        cancel_token: CancelToken,
    ) -> Iterable[RuleSample]: ...


class RuleEvaluator(Protocol):
    """Runs queries of rules. `RuleQueries` implements it."""

    def run(
        self, query: RuleQuery, at_ms: int, cancel_token: CancelToken
    ) -> Sequence[RuleSample]: ...

    def over_time(
        self,
        query: RuleQuery,
        times_ms: Sequence[int],
        step_ms: int,
        cancel_token: CancelToken,
    ) -> Iterator[RuleSample]: ...


class RuleQueries:
    """Runs queries over the tables of a node, within limits."""

    def __init__(self, sql: RunSql, promql: RunPromql, *, limits: Limits, rows_max: int) -> None:
        self._sql = sql
        self._promql = promql
        self._limits = limits
        self._rows_max = rows_max

    def run(self, query: RuleQuery, at_ms: int, cancel_token: CancelToken) -> Sequence[RuleSample]:
        """Return the rows. `TooLarge` if there are more than `rules.rows_max`."""
        own_token = CancelToken()  # the timeout of one query must not cancel the next
        cancel_token.attach(own_token)
        try:
            return self._rows(query, at_ms, own_token)
        finally:
            cancel_token.detach()

    def over_time(
        self,
        query: RuleQuery,
        times_ms: Sequence[int],
        step_ms: int,
        cancel_token: CancelToken,
    ) -> Iterator[RuleSample]:
        """Yield the rows as of several times, which are `step_ms` apart."""
        if query.language == "promql":
            yield from self._promql.over_time(
                query.text, times_ms, step_ms, self._limits, cancel_token
            )
            return
        for at_ms in times_ms:
            yield from self.run(query, at_ms, cancel_token)

    def _rows(
        self, query: RuleQuery, at_ms: int, cancel_token: CancelToken
    ) -> Sequence[RuleSample]:
        if query.language == "sql":
            with self._sql(bound_sql(query.text, at_ms), self._limits, cancel_token) as result:
                return samples_of_rows(result.arrow(), at_ms)
        found = list(self._promql(query.text, at_ms, self._limits, cancel_token))
        if len(found) > self._rows_max:
            raise TooLarge(
                f"the query returns {len(found)} series, above rules.rows_max ({self._rows_max}); "
                "aggregate, or raise it"
            )
        return found


def samples_of_rows(rows: pa.Table, at_ms: int) -> list[RuleSample]:
    """Return rows as samples. A row whose value is null is none; a label that is null is absent."""
    names = [str(name) for name in rows.column_names]
    _check_columns(rows, names)
    labels = [name for name in names if name != VALUE]
    columns = {name: rows.column(name).to_pylist() for name in labels}
    samples = []
    for index, value in enumerate(rows.column(VALUE).to_pylist()):
        if value is None:
            continue
        pairs = _labels(columns, index)
        samples.append(RuleSample(labels=pairs, value=float(value), time_ms=at_ms))
    return samples


def _check_columns(rows: pa.Table, names: list[str]) -> None:
    if names.count(VALUE) != 1:
        raise Malformed(
            f"the query of a rule needs one column {VALUE}, with a number; this one has "
            f"{', '.join(names)}"
        )
    kind = rows.schema.field(VALUE).type
    if not (
        pa.types.is_integer(kind)
        or pa.types.is_floating(kind)
        or pa.types.is_decimal(kind)
        or pa.types.is_boolean(kind)
    ):
        raise Malformed(f"the column {VALUE} is {kind}; cast it to DOUBLE")
    for field in rows.schema:
        if field.name == VALUE:
            continue
        if pa.types.is_nested(field.type) or pa.types.is_binary(field.type):
            raise Malformed(
                f"the column {field.name} is {field.type}, which is no label; select a text of it"
            )
        if LABEL_COLUMN.fullmatch(field.name) is None or names.count(field.name) > 1:
            raise Malformed(
                f"the column {field.name!r} cannot be a label; name each column with AS, in "
                "letters, digits and _"
            )


def _labels(columns: dict[str, list[Any]], index: int) -> LabelPairs:
    return label_pairs({name: _text(values[index]) for name, values in columns.items()})


def _text(value: Any) -> str:
    match value:
        case None:
            return ""
        case bool():
            return "true" if value else "false"
        case datetime():
            return value.isoformat()
    return str(value)
