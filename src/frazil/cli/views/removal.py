"""Retention rules, and the result of a removal."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from frazil.cli.terminal.table import headings_of, print_table
from frazil.cli.views.status import day_text, kept_text, rule_text

if TYPE_CHECKING:
    from frazil.removal import RemovalPreview, RemovalReport, RuleStatus


def print_rules(rules: Sequence[RuleStatus]) -> None:
    """Print the rules and what they will remove when."""
    rows = [
        (
            rule_text(rule.table, rule.where),
            kept_text(rule.age_s),
            _time(rule.cut_ms),
            _time(rule.oldest_ms),
            f"{rule.due_rows:,}" if rule.where is None else "-",
            _time(rule.next_ms),
        )
        for rule in rules
    ]
    headings = ("rule", "kept for", "removes before", "oldest row", "expired", "next removal from")
    print_table(headings_of(*headings), rows)


def print_previews(previews: Sequence[RemovalPreview]) -> None:
    """Print what would be removed."""
    rows = [(each.table, f"{each.rows:,}", f"{each.files:,}") for each in previews]
    print_table(headings_of("table", numbers=("rows to remove", "in files")), rows)


def print_report(report: RemovalReport) -> None:
    """Print what was removed, and what is left where."""
    rows = [
        (
            each.table,
            f"{each.rows:,}",
            f"{each.files_dropped:,}",
            f"{each.files_rewritten:,}",
            f"{each.snapshots_expired:,}",
            f"{each.files_deleted:,}",
            f"{each.rows_left:,}",
        )
        for each in report.tables
    ]
    numbers = ("rows removed", "files dropped", "rewritten", "snapshots", "deleted", "rows left")
    print_table(headings_of("table", numbers=numbers), rows)
    for table in report.tables:
        if table.tags_dropped:
            print(f"{table.table}: tags dropped: {', '.join(table.tags_dropped)}")
    print(f"log: {report.log_copies:,} offsets left; hot tier: {report.hot_copies:,} offsets left")
    if report.skipped:
        print(f"Not searched, because they lack these columns: {', '.join(report.skipped)}")
    for each in report.left:
        print(f"frazil: {each}", file=sys.stderr)


def _time(time_ms: int | None) -> str:
    return "-" if time_ms is None else day_text(time_ms)
