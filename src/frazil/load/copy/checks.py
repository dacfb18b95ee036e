"""`VALIDATE (…)`: conditions on the rows of a load, before anything of it is committed.

Counts are known to the driver. Queries run in one task, over the data files that were written and
that no table has yet.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from frazil.definitions import NEW_ROWS, LoadCheck
from frazil.errors import Malformed, Rejected
from frazil.load.copy.target import OpenRows

EXAMPLES = 3
"""Rows in the message of a failed condition."""
MESSAGE_CHARS_MAX = 600


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckTask:
    """Conditions that read the new rows."""

    checks: tuple[LoadCheck, ...]
    open_rows: OpenRows
    now_us: int


def failed_count(checks: Sequence[LoadCheck], row_count: int, error_count: int) -> str | None:
    """Return which condition on counts does not hold; None if all do."""
    for check in checks:
        if check.kind == "not_empty" and not row_count:
            return f"{check.text}: the new files have no rows to load"
        total = row_count + error_count
        if check.kind == "max_error_rate" and total and error_count > check.rate * total:
            share = error_count / total
            return f"{check.text}: {error_count} of {total} rows are errors, a share of {share:.3g}"
    return None


def run_check_task(task: CheckTask) -> str | None:
    """Return which condition does not hold, with examples; None if all do."""
    from frazil.query import first_rows

    rows = task.open_rows()
    for check in task.checks:
        query = query_of(check)
        if not query:
            continue
        try:
            found = first_rows(query, NEW_ROWS, rows, now_us=task.now_us, count=EXAMPLES)
        except Rejected as error:
            raise Malformed(f"{check.text}: {error}") from error
        if found:
            return f"{check.text}: found {'; '.join(map(_shown, found))}"[:MESSAGE_CHARS_MAX]
    return None


def query_of(check: LoadCheck) -> str:
    """Return a query that finds rows exactly if a condition does not hold; empty if it is one on
    counts. As in SQL, NULL breaks no condition."""
    columns = [_quoted(column) for column in check.columns]
    if check.kind == "unique":
        listed = ", ".join(columns)
        known = " AND ".join(f"{column} IS NOT NULL" for column in columns)
        return (
            f"SELECT {listed}, count(*) AS occurrences FROM {NEW_ROWS} WHERE {known} "
            f"GROUP BY {listed} HAVING count(*) > 1"
        )
    if check.kind == "range":
        (column,) = columns
        return (
            f"SELECT {column} FROM {NEW_ROWS} "
            f"WHERE NOT ({column} BETWEEN {check.low} AND {check.high})"
        )
    return check.query


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _shown(row: dict[str, object]) -> str:
    return ", ".join(f"{name} = {value}" for name, value in row.items())
