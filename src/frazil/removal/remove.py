"""Removes rows from tables, older snapshots, hot tier and log, and checks each place afterwards.

1. flush    commit everything durable, so that the tables hold every row accepted so far
2. tables   remove the rows; expire every snapshot that may have them; delete the files
3. copies   wait until hot tier and log have dropped the offsets of these rows
4. prove    read all files of all snapshots again, and count

Each step can be repeated after a crash. The condition is stored nowhere: it may name a person.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from frazil.disk import RealDisk
from frazil.errors import Malformed
from frazil.lake import RowCondition, erasure_condition, retention_condition
from frazil.model import NS_PER_MS, Clock
from frazil.removal.copies import Copies, copies_of
from frazil.removal.report import RemovalPreview, RemovalReport, TableRemoval

if TYPE_CHECKING:
    from frazil.hot import HotTier
    from frazil.lake import Lake, Maintained
    from frazil.log import ReadableLog

POLL_S = 0.2
"""Interval between checks for copies."""
FLUSH_MS = 1_000
"""Segments end above the removed rows: after this time what is above them is committed, too."""
WAIT_MS = 60_000
"""How long to wait for copies to go."""
SET_ASIDE = ".damaged"
"""Suffix of files that a repair, or the hot tier, has set aside."""
LISTED_MAX = 10


class Removal:
    """One at a time: the lake's thread runs them in turn."""

    def __init__(
        self,
        lake: Lake,
        log: ReadableLog,
        tier: HotTier | None,
        data: str,
        clock: Clock,
        maintain_log: Callable[[], object] = lambda: None,
    ) -> None:
        """`data` is the data folder. `maintain_log` trims the log; a node does that by itself."""
        self._lake = lake
        self._log = log
        self._tier = tier
        self._disk = RealDisk(data)
        self._clock = clock
        self._maintain_log = maintain_log

    def preview_erasure(self, where: str, table: str | None) -> list[RemovalPreview]:
        """Count the rows that `erase` would remove."""
        return self._preview(self._conditions(where, table)[0])

    def preview_retention(self) -> list[RemovalPreview]:
        """Count the rows that have expired."""
        return self._preview(self._expired())

    def erase(self, where: str, table: str | None) -> RemovalReport:
        """Remove the rows of a table, or of all tables, that match."""
        conditions, skipped = self._conditions(where, table)
        done = self._lake.submit_erasure(conditions).result()
        return self._finish(conditions, done, skipped)

    def apply_retention(self) -> RemovalReport:
        """Remove all expired rows now."""
        conditions = self._expired()
        done = self._lake.submit_retention().result()
        return self._finish(conditions, done, [])

    def _preview(self, conditions: Sequence[RowCondition]) -> list[RemovalPreview]:
        self._lake.flush()
        counted = [(each.table, self._lake.submit_count(each).result()) for each in conditions]
        return [
            RemovalPreview(table=table, rows=rows, files=files) for table, (rows, files) in counted
        ]

    def _expired(self) -> list[RowCondition]:
        now_ms = self._clock.wall_ms()
        tables = dict.fromkeys(rule.table for rule in self._lake.rules)
        found = [retention_condition(self._lake.rules, table, now_ms) for table in tables]
        if not found:
            raise Malformed(
                'there are no retention rules; set some, such as [retention] logs = "30d"'
            )
        return [condition for condition in found if condition is not None]

    def _conditions(self, where: str, table: str | None) -> tuple[list[RowCondition], list[str]]:
        """Return a condition for each table that it fits, and the tables that it does not."""
        if table is not None:
            return [erasure_condition(table, where, self._lake.promotions)], []
        fitting, skipped = [], []
        error: Malformed | None = None
        for name in (*self._lake.view.pin().tables, *self._lake.view.topic_tables()):
            try:
                fitting.append(erasure_condition(name, where, self._lake.promotions))
            except Malformed as reason:
                error = error or reason
                skipped.append(name)
        if error is not None and not fitting:
            raise error
        unique = {condition.table: condition for condition in fitting}
        return list(unique.values()), sorted(set(skipped))

    def _finish(
        self, conditions: Sequence[RowCondition], done: Sequence[Maintained], skipped: list[str]
    ) -> RemovalReport:
        left = [f"{table.table}: {trouble}" for table in done for trouble in table.trouble]
        copies = self._wait_for_copies()
        left += [_copies_text(each) for each in copies] + self._set_aside()
        by_table = {condition.table: condition for condition in conditions}
        return RemovalReport(
            tables=[self._table(each, by_table[each.table]) for each in done],
            skipped=skipped,
            log_copies=sum(each.log_offsets for each in copies),
            hot_copies=sum(each.hot_offsets for each in copies),
            left=left,
        )

    def _table(self, done: Maintained, condition: RowCondition) -> TableRemoval:
        rows_left, _ = self._lake.submit_count(condition, is_all=True).result()
        return TableRemoval(
            table=done.table,
            rows=done.rows_removed,
            files_dropped=done.files_dropped,
            files_rewritten=done.files_rewritten,
            snapshots_expired=done.snapshots_expired,
            tags_dropped=list(done.tags_dropped),
            files_deleted=done.files_removed + done.orphans_removed,
            rows_left=rows_left,
        )

    def _wait_for_copies(self) -> list[Copies]:
        begin_ns = flushed_ns = self._clock.monotonic_ns()
        while True:
            self._maintain_log()
            view = self._lake.view.pin()
            copies = copies_of(view, self._log, self._tier)
            now_ns = self._clock.monotonic_ns()
            if not copies or now_ns - begin_ns > WAIT_MS * NS_PER_MS:
                return copies
            if now_ns - flushed_ns > FLUSH_MS * NS_PER_MS:
                self._lake.flush()
                flushed_ns = self._clock.monotonic_ns()
            self._clock.sleep(POLL_S)

    def _set_aside(self) -> list[str]:
        """Return a sentence about damaged files, which cannot be searched."""
        paths = sorted(path for path, _ in self._disk.files() if path.endswith(SET_ASIDE))
        if not paths:
            return []
        listed = ", ".join(paths[:LISTED_MAX])
        return [
            f"{len(paths)} damaged files were set aside and cannot be searched: {listed}; delete "
            "them if they are not needed"
        ]


def _copies_text(copies: Copies) -> str:
    places = [name for name, count in _counts(copies) if count]
    return (
        f"{' and '.join(places)} of {copies.partition} still has records of removed rows, because "
        "a reader has not read them yet (`frazil subscribers` shows which), or the topic is "
        "compacted; they go when they are no longer needed"
    )


def _counts(copies: Copies) -> tuple[tuple[str, int], ...]:
    return (("log", copies.log_offsets), ("hot tier", copies.hot_offsets))
