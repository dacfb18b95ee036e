"""Labels of a log record, in rows and in SQL.

    stream      the promoted columns of its resource: service_name, k8s_pod_name, …
    metadata    ids, severity, scope; attributes of the record, its scope and its resource

Names have underscores for other characters: `http.route` is http_route. Of equal names, the
stream's counts, then columns, then attributes of the record, of its scope, of its resource.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Any

from frazil.model import NUMBERS_PER_SEVERITY, SEVERITIES
from frazil.model.arrow import PROMOTED_RESOURCE, SERVICE_NAME
from frazil.query import label_name
from frazil.query import sql_text as text

STREAM_LABELS = ("service_name", *PROMOTED_RESOURCE)
"""What identifies a stream: columns of the same names."""
METADATA_COLUMNS = (
    "trace_id", "span_id", "severity_text", "event_name", "scope_name", "scope_version"
)  # fmt: skip
NUMBER_COLUMNS = ("severity_number",)
LEVEL = "detected_level"
LEVEL_ALIASES = frozenset({"level", "severity"})
"""They mean the severity where a record has no such attribute."""
UNKNOWN_LEVEL = "unknown"
LEVELS = tuple(name.lower() for name in SEVERITIES)
MAPS = ("attributes", "scope_attributes", "resource_attributes")

TIME_NS = "CASE WHEN time_unix_nano > 0 THEN time_unix_nano ELSE CAST(time AS BIGINT) * 1000 END"
"""The time of a record; in lines, not in conditions, which prune by `time`."""
LABEL_COLUMNS = (*STREAM_LABELS, *METADATA_COLUMNS, *NUMBER_COLUMNS, *MAPS)
"""What `labels_of` reads."""

_PROMOTED_KEYS = frozenset(
    {SERVICE_NAME, *(key for keys in PROMOTED_RESOURCE.values() for key in keys)}
)


def level_of(severity_number: int) -> str:
    """The level of a severity number, as Loki detects it."""
    index = (severity_number - 1) // NUMBERS_PER_SEVERITY
    return LEVELS[index] if severity_number > 0 and index < len(LEVELS) else UNKNOWN_LEVEL


def level_condition(is_meant: Callable[[str], bool]) -> str:
    """SQL of the records whose level is meant, as ranges of numbers."""
    ranges = [
        f"severity_number BETWEEN {begin} AND {begin + NUMBERS_PER_SEVERITY - 1}"
        for index, name in enumerate(LEVELS)
        for begin in (NUMBERS_PER_SEVERITY * index + 1,)
        if is_meant(name)
    ]
    if is_meant(UNKNOWN_LEVEL):
        ranges.append(f"severity_number NOT BETWEEN 1 AND {NUMBERS_PER_SEVERITY * len(LEVELS)}")
    return f"({' OR '.join(ranges)})" if ranges else "false"


def _level_sql() -> str:
    cases = " ".join(
        f"WHEN severity_number BETWEEN {NUMBERS_PER_SEVERITY * index + 1} "
        f"AND {NUMBERS_PER_SEVERITY * (index + 1)} THEN '{name}'"
        for index, name in enumerate(LEVELS)
    )
    return f"CASE {cases} ELSE '{UNKNOWN_LEVEL}' END"


LEVEL_SQL = _level_sql()


def label_sql(name: str) -> str:
    """SQL of a label, null if a record lacks it."""
    name = label_name(name)
    if name in STREAM_LABELS or name in METADATA_COLUMNS:
        return f'"{name}"'
    if name in NUMBER_COLUMNS:
        return f'CAST("{name}" AS VARCHAR)'
    if name == LEVEL:
        return LEVEL_SQL
    parts = [f"label_value({column}, {text(name)})" for column in MAPS]
    if name in LEVEL_ALIASES:
        parts.append(LEVEL_SQL)
    return f"coalesce({', '.join(parts)})"


def labels_of(row: Mapping[str, Any]) -> tuple[dict[str, str], dict[str, str]]:
    """Labels of the stream, and metadata, of a row with `LABEL_COLUMNS`."""
    stream = {name: row[name] for name in STREAM_LABELS if row[name]}
    metadata: dict[str, str] = {}
    for column in reversed(MAPS):
        for key, value in row[column]:
            name = label_name(key)
            is_promoted = column == "resource_attributes" and key in _PROMOTED_KEYS
            if not is_promoted and name not in stream:
                metadata[name] = value
    for name in METADATA_COLUMNS:
        if row[name]:
            metadata[name] = row[name]
    metadata["severity_number"] = str(row["severity_number"])
    metadata[LEVEL] = level_of(row["severity_number"])
    return stream, metadata


@lru_cache(maxsize=64)
def column_list(names: Iterable[str]) -> str:
    return ", ".join(f'"{name}"' for name in names)
