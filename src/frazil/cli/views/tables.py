"""Keyed tables, their rows and changes, as `frazil tables` prints them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from frazil.cli.terminal.cells import text_of
from frazil.cli.terminal.colors import DIM, GREEN, RED, YELLOW, Colors
from frazil.cli.terminal.table import Heading, Row, headings_of
from frazil.cli.terminal.text_width import padded, safe, shortened, width
from frazil.cli.terminal.units import bytes_text

HEADINGS = headings_of("table", "state", "key", numbers=("partitions", "rows", "size", "lag"))
COLUMNS = headings_of("column", "type", "null")
PARTITIONS = headings_of(
    numbers=("partition", "first", "written", "indexed", "sealed", "iceberg"),
)
NOT_COLUMNS = frozenset({"_change", "_offset", "_time", "_by", "_log_partition"})
"""Of a change; no column can have these names."""
CHANGE_COLORS = {"insert": GREEN, "update": YELLOW, "delete": RED}
CHANGE_COLUMNS = len("insert")
UNKNOWN = "-"

Json = Mapping[str, Any]


def table_row(status: Json) -> Row:
    return (
        status["table"],
        status["state"].replace("_", " "),
        ", ".join(status["key"]),
        f"{len(status['partitions']):,}",
        f"{status['keys']:,}",
        bytes_text(status["row_bytes"]),
        f"{status['lag_offsets']:,}",
    )


def column_row(column: Json, key: Sequence[str]) -> Row:
    is_key = column["name"] in key
    return column["name"], column["type"], "key" if is_key else _yes(column["nullable"])


def _yes(value: bool) -> str:
    return "yes" if value else "no"


def watermarks_row(partition: Json) -> Row:
    iceberg = partition["iceberg"]
    return (
        str(partition["partition"]),
        *(f"{partition[name]:,}" for name in ("first", "written", "indexed", "sealed")),
        UNKNOWN if iceberg is None else f"{iceberg:,}",
    )


def version_headings(columns: Sequence[str]) -> list[Heading]:
    """Return the headings of the versions of a row."""
    return [*headings_of("change", "time", "by", numbers=("offset",)), *headings_of(*columns)]


def version_row(version: Json, columns: Sequence[str]) -> Row:
    return (
        version["_change"] or UNKNOWN,
        _time(version),
        version["_by"] or UNKNOWN,
        str(version["_offset"]),
        *(text_of(version[name]) for name in columns),
    )


def columns_of(change: Json) -> list[str]:
    """Return the columns of the table in a change."""
    return [name for name in change if name not in NOT_COLUMNS]


def change_line(change: Json, columns: int | None, paint: Colors) -> str:
    """Time, change, partition and offset, who made it, and the row, on one line of at most
    `columns`."""
    kind = change["_change"]
    row = {name: change[name] for name in columns_of(change)}
    time, by = _time(change), safe(change["_by"] or UNKNOWN)
    where = f"{change['_log_partition']}/{change['_offset']}"
    text = safe(json.dumps(row, ensure_ascii=False))
    if columns is not None:
        taken = len(time) + CHANGE_COLUMNS + len(where) + width(by) + 4
        text = shortened(text, max(0, columns - taken))
    word = paint(padded(kind, CHANGE_COLUMNS), CHANGE_COLORS[kind])
    return f"{paint(time, DIM)} {word} {paint(where, DIM)} {paint(by, DIM)} {text}"


def _time(change: Json) -> str:
    """Return when a change was written, in UTC."""
    time = change["_time"]
    return UNKNOWN if time is None else time.replace("T", " ").removesuffix("Z")
