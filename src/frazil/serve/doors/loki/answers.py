"""Streams, vectors and matrices as Loki's clients read them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from frazil.languages import (
    LabelKey,
    LineSeries,
    LogLine,
    LogScalar,
    LogSteps,
    label_key,
    sample_text,
)

CATEGORIZE = "categorize-labels"
"""With this flag, a stream has its own labels, and each line those that it adds."""
FLAGS_HEADER = "x-loki-response-encoding-flags"

NS_PER_S = 10**9


def success(data: Any) -> dict[str, Any]:
    return {"status": "success", "data": data}


def stats_of(line_count: int, entry_count: int) -> dict[str, Any]:
    """Statistics that Grafana shows."""
    return {
        "summary": {
            "bytesProcessedPerSecond": 0,
            "linesProcessedPerSecond": 0,
            "totalBytesProcessed": 0,
            "totalLinesProcessed": line_count,
            "execTime": 0,
            "queueTime": 0,
            "subqueries": 0,
            "totalEntriesReturned": entry_count,
            "splits": 0,
            "shards": 0,
        }
    }


def streams_of(lines: Iterable[LogLine], *, is_categorized: bool) -> list[dict[str, Any]]:
    """FoundLines by stream, in their order."""
    streams: dict[LabelKey, list[list[Any]]] = {}
    for line in lines:
        labels = line.stream if is_categorized else line.labels()
        entry: list[Any] = [str(line.time_ns), line.line]
        if is_categorized:
            entry.append(_categories(line))
        streams.setdefault(label_key(labels), []).append(entry)
    return [{"stream": dict(key), "values": values} for key, values in streams.items()]


def _categories(line: LogLine) -> dict[str, dict[str, str]]:
    metadata = {name: value for name, value in line.metadata.items() if name not in line.parsed}
    parsed = {name: value for name, value in line.parsed.items() if value}
    categories = {"structuredMetadata": metadata, "parsed": parsed}
    return {name: labels for name, labels in categories.items() if labels}


def streams_data(
    lines: Sequence[LogLine], read_count: int, *, is_categorized: bool
) -> dict[str, Any]:
    data = {
        "resultType": "streams",
        "result": streams_of(lines, is_categorized=is_categorized),
        "stats": stats_of(read_count, len(lines)),
    }
    return {**data, "encodingFlags": [CATEGORIZE]} if is_categorized else data


def vector_data(value: LogScalar | Sequence[LineSeries], time_ns: int) -> dict[str, Any]:
    """Values at one time."""
    seconds = _seconds(time_ns)
    if isinstance(value, LogScalar):
        result: Any = [seconds, sample_text(value.value)]
        return {"resultType": "scalar", "result": result, "stats": stats_of(0, 1)}
    result = [
        {
            "metric": dict(series.labels),
            "value": [seconds, sample_text(float(series.values[0]))],
        }
        for series in value
    ]
    return {"resultType": "vector", "result": result, "stats": stats_of(0, len(result))}


def matrix_data(value: LogScalar | Sequence[LineSeries], grid: LogSteps) -> dict[str, Any]:
    """Values at each step."""
    times = [_seconds(int(time)) for time in grid.times_ns()]
    if isinstance(value, LogScalar):
        text = sample_text(value.value)
        result: Any = [{"metric": {}, "values": [[time, text] for time in times]}]
    else:
        result = [
            {
                "metric": dict(series.labels),
                "values": [
                    [time, sample_text(number)]
                    for time, number, is_present in zip(
                        times, series.values.tolist(), series.is_present.tolist(), strict=True
                    )
                    if is_present
                ],
            }
            for series in value
        ]
    return {"resultType": "matrix", "result": result, "stats": stats_of(0, len(result))}


def _seconds(time_ns: int) -> float | int:
    """Seconds, with milliseconds if there are any."""
    millis = time_ns // 10**6
    return millis // 1000 if millis % 1000 == 0 else millis / 1000
