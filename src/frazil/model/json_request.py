"""JsonRequest: an export request as OTLP/JSON: its signal, its records, and how to halve it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import msgspec

from frazil.errors import Malformed


class LevelNames(NamedTuple):
    """Field names of the levels of a request."""

    resources: tuple[str, str]
    scopes: tuple[str, str]
    records: tuple[str, str]


LEVEL_NAMES = {
    "logs": LevelNames(
        ("resourceLogs", "resource_logs"),
        ("scopeLogs", "scope_logs"),
        ("logRecords", "log_records"),
    ),
    "traces": LevelNames(
        ("resourceSpans", "resource_spans"), ("scopeSpans", "scope_spans"), ("spans", "spans")
    ),
    "metrics": LevelNames(
        ("resourceMetrics", "resource_metrics"),
        ("scopeMetrics", "scope_metrics"),
        ("metrics", "metrics"),
    ),
}
"""In JSON, and in the .proto files, which collectors accept as well."""
POINTS = ("dataPoints", "data_points")


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonRequest:
    """One export request as parsed JSON."""

    signal: str
    content: dict[str, Any]

    @property
    def record_count(self) -> int:
        names = LEVEL_NAMES[self.signal]
        records = [
            record
            for resource in _list(self.content, names.resources)
            for scope in _list(resource, names.scopes)
            for record in _list(scope, names.records)
        ]
        if self.signal != "metrics":
            return len(records)
        return sum(
            len(_list(data, POINTS))
            for metric in records
            if isinstance(metric, dict)
            for data in metric.values()
        )

    def halves(self) -> tuple[JsonRequest, JsonRequest] | None:
        """Return the records in two requests; None if there is only one."""
        names = LEVEL_NAMES[self.signal]
        levels = (names.resources, names.scopes, names.records)
        halves = _halves(self.content, levels)
        if halves is None:
            return None
        first, second = halves
        return JsonRequest(signal=self.signal, content=first), JsonRequest(
            signal=self.signal, content=second
        )


def request_of(text: bytes) -> JsonRequest:
    """Parse a request. Raises Malformed if it is not a JSON export request."""
    try:
        content = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        reason = str(error).removeprefix("JSON is malformed: ")
        raise Malformed(f"not JSON: {reason}") from None
    except RecursionError:
        raise Malformed("nested too deeply for an OTLP request") from None
    if not isinstance(content, dict):
        raise Malformed("not a JSON object")
    signals = [
        signal
        for signal, names in LEVEL_NAMES.items()
        if any(name in content for name in names.resources)
    ]
    if len(signals) != 1:
        raise Malformed(
            "not an OTLP export request: it needs one of resourceLogs, resourceSpans and "
            "resourceMetrics"
        )
    return JsonRequest(signal=signals[0], content=content)


def _halves(
    parent: dict[str, Any], levels: tuple[tuple[str, str], ...]
) -> tuple[dict[str, Any], dict[str, Any]] | None:
    """Split the outermost list that has more than one element."""
    if not levels:
        return None
    name = next((name for name in levels[0] if name in parent), levels[0][0])
    items = _list(parent, levels[0])
    if len(items) > 1:
        middle = len(items) // 2
        return {**parent, name: items[:middle]}, {**parent, name: items[middle:]}
    if not items or not isinstance(items[0], dict):
        return None
    inner = _halves(items[0], levels[1:])
    if inner is None:
        return None
    return {**parent, name: [inner[0]]}, {**parent, name: [inner[1]]}


def _list(parent: object, names: tuple[str, str]) -> list[Any]:
    """Return a list inside an object; empty if it is not a list, which the node rejects."""
    if not isinstance(parent, dict):
        return []
    value = next((parent[name] for name in names if name in parent), None)
    return value if isinstance(value, list) else []
