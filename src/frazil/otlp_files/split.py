"""A line of OTLP/JSON: which signal it is, how many records it has, and how it is cut in two."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import msgspec

from frazil.errors import Malformed


class LevelNames(NamedTuple):
    """What the levels of a request are called."""

    resources: tuple[str, str]
    scopes: tuple[str, str]
    records: tuple[str, str]


NAMES = {
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
"""As in JSON, and as in the .proto files, which collectors also take."""
POINTS = ("dataPoints", "data_points")


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonRequest:
    """One export request, as JSON has it."""

    signal: str
    content: dict[str, Any]

    @property
    def record_count(self) -> int:
        names = NAMES[self.signal]
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
        """The same records in two requests; None when there is just one of them."""
        names = NAMES[self.signal]
        levels = (names.resources, names.scopes, names.records)
        found = _halves(self.content, levels)
        if found is None:
            return None
        first, second = found
        return JsonRequest(signal=self.signal, content=first), JsonRequest(
            signal=self.signal, content=second
        )


def request_of(text: bytes) -> JsonRequest:
    """What a line says. `Malformed` when it is not JSON, or no export request."""
    try:
        content = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        why = str(error).removeprefix("JSON is malformed: ")
        raise Malformed(f"not JSON: {why}") from None
    except RecursionError:
        raise Malformed("nested more deeply than any request") from None
    if not isinstance(content, dict):
        raise Malformed("not an object of JSON")
    signals = [
        signal
        for signal, names in NAMES.items()
        if any(name in content for name in names.resources)
    ]
    if len(signals) != 1:
        raise Malformed(
            "not one export request of OTLP: it needs one of resourceLogs, resourceSpans and "
            "resourceMetrics"
        )
    return JsonRequest(signal=signals[0], content=content)


def _halves(
    holder: dict[str, Any], levels: tuple[tuple[str, str], ...]
) -> tuple[dict[str, Any], dict[str, Any]] | None:
    """Cut the first list that has more than one element, from the outside to the inside."""
    if not levels:
        return None
    name = next((name for name in levels[0] if name in holder), levels[0][0])
    held = _list(holder, levels[0])
    if len(held) > 1:
        middle = len(held) // 2
        return {**holder, name: held[:middle]}, {**holder, name: held[middle:]}
    if not held or not isinstance(held[0], dict):
        return None
    inner = _halves(held[0], levels[1:])
    if inner is None:
        return None
    return {**holder, name: [inner[0]]}, {**holder, name: [inner[1]]}


def _list(holder: object, names: tuple[str, str]) -> list[Any]:
    """A list inside of something; none where there is something else, which the node refuses."""
    if not isinstance(holder, dict):
        return []
    found = next((holder[name] for name in names if name in holder), None)
    return found if isinstance(found, list) else []
