"""RowCondition: which rows of a table are removed. From retention rules, or from an erasure.

A condition is one SQL expression over the columns of the table, evaluated by DataFusion, as queries
are. It never becomes part of a larger text, so it cannot end early or begin another statement.

The cut of a rule is a full UTC day for ages of two days or more, else a full hour. A data file
holds one day, so rules without a condition remove whole files, and no file is rewritten every hour.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from frazil.errors import InvalidSetting, Malformed, Unknown
from frazil.lake.tables.properties import PARTITION_COLUMN, TOPIC_PREFIX
from frazil.lake.tables.record_rows import columns_of
from frazil.model import NO_PROMOTIONS, Promotions
from frazil.model.arrow import TABLES
from frazil.settings import RetentionRule

if TYPE_CHECKING:
    from datafusion import SessionContext

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
US_PER_MS = 1000
TIME = 'Timestamp(Microsecond, Some("UTC"))'
WINDOW = re.compile(r"\bover\s*\(", re.IGNORECASE)
CONDITION_LENGTH_MAX = 10_000
HIT = "hit"


@dataclass(frozen=True, slots=True, kw_only=True)
class RowCondition:
    """Rows of one table that are removed."""

    table: str
    sql: str
    cuts_us: tuple[int, ...] = ()
    """Times at which the result may change; rows at or after the last are not removed. Empty if the
    time does not matter."""
    all_before_us: int | None = None
    """Every row before this time is removed; None if that depends on other columns."""

    def may_match(self, time_min_us: int | None) -> bool:
        """Return False if no row of a file with this first time is removed."""
        return not self.cuts_us or time_min_us is None or time_min_us < self.cuts_us[-1]

    def matches_all(self, time_max_us: int | None) -> bool:
        """Return True if every row of a file with this last time is removed."""
        before_us = self.all_before_us
        return before_us is not None and time_max_us is not None and time_max_us < before_us

    def key_for(self, time_min_us: int | None, time_max_us: int | None) -> tuple[object, ...]:
        """Return what the result for a file depends on besides its rows: a file that was read once
        need not be read again until this changes."""
        if time_min_us is None or time_max_us is None:
            return (self.sql, self.cuts_us)
        cuts = tuple(max(time_min_us, min(cut, time_max_us + 1)) for cut in self.cuts_us)
        return (len(cuts), cuts) if self.cuts_us else (self.sql,)

    def columns_in(self, names: Sequence[str]) -> list[str]:
        """Return the columns that the condition may use, and those that name a row."""
        text = self.sql.lower()
        used = {"_log_partition", "_offset", "topic", PARTITION_COLUMN}
        return [name for name in names if name in used or name.lower() in text]


def cut_ms(rule: RetentionRule, now_ms: int) -> int:
    """Return the time before which rows of a rule are removed."""
    step_ms = cut_step_ms(rule)
    return (now_ms - rule.age_ms) // step_ms * step_ms


def cut_step_ms(rule: RetentionRule) -> int:
    """Return the step in which the cut of a rule advances."""
    return DAY_MS if rule.age_ms >= 2 * DAY_MS else HOUR_MS


def retention_condition(
    rules: Sequence[RetentionRule], table: str, now_ms: int
) -> RowCondition | None:
    """Return the rows of a table that have expired, or None if no rule is about it."""
    rules = [rule for rule in rules if rule.table == table]
    if not rules:
        return None
    by_condition = sorted((r for r in rules if r.where is not None), key=lambda r: -r.age_ms)
    cuts = {rule.name: cut_ms(rule, now_ms) * US_PER_MS for rule in rules}
    of_table = cuts.get(table)
    rest = "false" if of_table is None else _before(of_table)
    # The first condition that a row meets is the one with the longest age.
    cases = " ".join(f"WHEN ({r.where}\n) THEN {_before(cuts[r.name])}" for r in by_condition)
    return RowCondition(
        table=table,
        sql=f"CASE {cases} ELSE {rest} END" if cases else rest,
        cuts_us=tuple(sorted(cuts.values())),
        all_before_us=None if of_table is None else min(cuts.values()),
    )


def erasure_condition(
    table: str, where: str, promotions: Promotions = NO_PROMOTIONS
) -> RowCondition:
    """Return the rows to erase. Raises `Malformed` if the condition does not fit the table."""
    check_condition(table, where, promotions)
    return RowCondition(table=table, sql=where)


def check_rules(rules: Sequence[RetentionRule], promotions: Promotions = NO_PROMOTIONS) -> None:
    """Raise `InvalidSetting` if a condition does not fit its table."""
    for rule in rules:
        if rule.where is not None:
            try:
                check_condition(rule.table, rule.where, promotions)
            except Malformed as error:
                raise InvalidSetting(
                    f"retention.{rule.name!r}: {error}", f"retention.{rule.name}"
                ) from None


def check_condition(table: str, where: str, promotions: Promotions = NO_PROMOTIONS) -> None:
    """Raise `Malformed` unless the text is one true-or-false expression over a row's columns."""
    if table not in TABLES and not table.startswith(TOPIC_PREFIX):
        raise Unknown(f"there is no table {table}; tables are {', '.join(TABLES)}")
    if not where.strip():
        raise Malformed("the condition is empty; write one, such as service_name = 'x'")
    if len(where) > CONDITION_LENGTH_MAX:
        raise Malformed(
            f"the condition has {len(where)} characters; at most {CONDITION_LENGTH_MAX} are allowed"
        )
    if WINDOW.search(where):
        raise Malformed("the condition uses a window function; it must be about one row")
    columns = columns_of(table, promotions)
    schema = pa.schema([field.with_nullable(True) for field in columns])
    row = pa.RecordBatch.from_arrays([pa.nulls(1, f.type) for f in schema], schema=schema)
    try:
        hits = matching(row, where)
    except Malformed as error:
        raise Malformed(
            f"{where!r} is not a condition on the columns of {table}: {error}"
        ) from None
    if len(hits) != 1:
        raise Malformed(f"{where!r} is not a condition on one row of {table}")


def matching(rows: pa.RecordBatch, sql: str) -> pa.BooleanArray:
    """Return for each row whether it meets the condition; null counts as no.

    Raises `Malformed` if the condition cannot be evaluated.
    """
    frame = _context().from_arrow(pa.Table.from_batches([rows]))
    try:
        result = frame.select(frame.parse_sql_expr(sql).alias(HIT)).to_arrow_table()
    except Exception as error:  # noqa: BLE001 # top of loop: DataFusion has no class
        raise Malformed(_reason(error)) from None
    hits = result.column(HIT).combine_chunks()
    if isinstance(hits, pa.ChunkedArray):
        hits = pa.concat_arrays(hits.chunks) if hits.num_chunks else pa.array([], pa.bool_())
    if not pa.types.is_boolean(hits.type):
        raise Malformed(f"it is {hits.type}, not true or false")
    return pc.fill_null(hits, False)


@lru_cache(1)
def _context() -> SessionContext:
    from datafusion import SessionConfig, SessionContext

    # One thread keeps the rows in order.
    return SessionContext(SessionConfig().with_target_partitions(1))


def _reason(error: Exception) -> str:
    """Return DataFusion's message without its prefix and the generated table name."""
    text = str(error).removeprefix("DataFusion error: ")
    return re.sub(r"\bc[0-9a-f]{32}\.", "", text).partition("\nValid fields")[0]


def _before(cut_us: int) -> str:
    return f"{PARTITION_COLUMN} < arrow_cast({cut_us}, '{TIME}')"
