"""Rows of `frazil topics`, and how long a topic keeps records."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from frazil.cli.terminal.table import Row
from frazil.cli.terminal.units import bytes_text

UNITS = ((86_400_000, "d"), (3_600_000, "h"), (60_000, "m"), (1000, "s"))
FOREVER_MS = 2**63 - 1

Json = Mapping[str, Any]


def topic_row(topic: Json) -> Row:
    size = topic["log_bytes"]
    return (
        topic["topic"],
        f"{topic['partitions']:,}",
        f"{topic['records']:,}",
        "-" if size is None else bytes_text(size),
        retention_text(topic),
    )


def partition_row(partition: Json) -> Row:
    return (
        str(partition["partition"]),
        f"{partition['start_offset']:,}",
        f"{partition['durable_watermark']:,}",
        _count(partition.get("hot_lag_offsets")),
        _count(partition.get("lake_lag_offsets")),
        f"{partition['log_segments']:,}",
        bytes_text(partition["log_bytes"]),
    )


def _count(number: int | None) -> str:
    return "-" if number is None else f"{number:,}"


def retention_text(topic: Json) -> str:
    """`7d`, `7d, at most 1 GiB`, `compacted`, `compacted, 7d`, `10m after lake`, `forever`."""
    if topic["cleanup"] == "compact":
        return "compacted"
    age_ms, size = topic["retention_ms"], topic["retention_bytes_max"]
    text = "forever" if age_ms is None or age_ms >= FOREVER_MS else _age(age_ms)
    if topic["cleanup"] == "compact_expire":
        text = f"compacted, {text}"
    if topic.get("awaits_lake"):
        text += " after lake"
    return text if size is None else f"{text}, at most {bytes_text(size)}"


def _age(age_ms: int) -> str:
    """Return the age in its largest whole unit."""
    for size_ms, unit in UNITS:
        if age_ms % size_ms == 0 and age_ms:
            return f"{age_ms // size_ms}{unit}"
    return f"{age_ms} ms"
