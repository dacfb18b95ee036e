"""The notation of series in promqltest scripts: labels, then points."""

from __future__ import annotations

import ast
import math
import re
import struct
from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from frazil.languages.promql.histogram import NativeHistogram, ResetHint, buckets_of
from frazil.languages.promql.histogram_sums import added, subtracted
from frazil.languages.promql.points import LabelSet

STALE = struct.unpack("<d", struct.pack("<q", 0x7FF0000000000002))[0]
_UNITS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}
_UNITS["y"] = 365 * _UNITS["d"]
_DURATION = re.compile(r"(\d+)(ms|[smhdwy])")
_LABEL = re.compile(
    r'\s*(?:([\w.:]+|"(?:\\.|[^"\\])*")\s*=\s*)?("(?:\\.|[^"\\])*"|`[^`]*`|\'[^\']*\')\s*,?'
)
_NUMBER = r"[+-]?(?:\d+\.?\d*(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?|(?i:inf|nan))"
_HISTOGRAM = r"\{\{.*?\}\}"
_POINT = re.compile(
    rf"\s*(?:(?P<blank>_)|(?P<stale>stale)|(?P<first>{_HISTOGRAM})(?:(?P<sign>[+-])(?P<second>{_HISTOGRAM}))?"
    rf"|(?P<number>{_NUMBER})(?P<step>{_NUMBER})?)(?:x(?P<times>\d+))?(?=\s|$)"
)
_FIELD = re.compile(r"(\w+):(\[[^\]]*\]|\S+)")


class Point(NamedTuple):
    """A point of the notation; both None if it is left out."""

    value: float | None
    histogram: NativeHistogram | None = None
    has_hint: bool = False


def duration_ms(text: str) -> int:
    """Read a duration such as 1h30m, or seconds without a unit."""
    sign = -1 if text.startswith("-") else 1
    text = text.lstrip("-")
    parts = _DURATION.findall(text)
    if not parts:
        return sign * round(float(text) * 1000)
    return sign * sum(int(count) * _UNITS[unit] for count, unit in parts)


def number(text: str) -> float:
    """Read a number as Go does."""
    return float(int(text, 0)) if "x" in text else float(text)


def series_of(line: str) -> tuple[LabelSet, list[Point]]:
    """Read a line with labels and points."""
    labels: dict[str, str] = {}
    match = re.match(r"[A-Za-z_:][\w:.]*", line)
    at = 0
    if match:
        labels["__name__"] = match.group()
        at = match.end()
    if line[at : at + 1] == "{" and line[at : at + 2] != "{{":
        at += 1
        while line[at:].lstrip()[:1] != "}":
            pair = _LABEL.match(line, at)
            assert pair is not None, line
            name = pair[1] or "__name__"
            name = ast.literal_eval(name) if name.startswith('"') else name
            value = pair[2][1:-1] if pair[2].startswith("`") else ast.literal_eval(pair[2])
            labels[name] = value
            at = pair.end()
        at = line.index("}", at) + 1
    kept = tuple(sorted((name, value) for name, value in labels.items() if value))
    return kept, list(points_of(line[at:]))


def points_of(text: str) -> Iterator[Point]:
    """Read points, each of which may stand for many."""
    at = 0
    while text[at:].strip():
        match = _POINT.match(text, at)
        assert match is not None, text[at:]
        times = int(match["times"] or 0)
        if match["blank"]:
            yield from [Point(None)] * max(times, 1)
        elif match["first"]:
            yield from _histograms(match, times)
        else:
            value = STALE if match["stale"] else number(match["number"])
            for _ in range(times + 1):
                yield Point(value)
                value += number(match["step"]) if match["step"] else 0.0
        at = match.end()


def _histograms(match: re.Match[str], times: int) -> Iterator[Point]:
    first = histogram_of(match["first"])
    has_hint = "counter_reset_hint" in match["first"]
    second = histogram_of(match["second"]) if match["second"] else None
    for _ in range(times + 1):
        yield Point(0.0, first, has_hint)
        if second is not None:
            combined = (added if match["sign"] == "+" else subtracted)(first, second)
            assert combined is not None
            hint = combined.histogram.hint if match["sign"] == "+" else ResetHint.GAUGE
            first = replace(combined.histogram, hint=hint)


def histogram_of(text: str) -> NativeHistogram:
    """Read a histogram such as {{schema:1 count:3 buckets:[1 2]}}."""
    fields = dict(_FIELD.findall(text[2:-2]))
    lists = {
        key: np.array([number(each) for each in value[1:-1].split()], np.float64)
        for key, value in fields.items()
        if value.startswith("[")
    }
    none = np.zeros(0)
    return NativeHistogram(
        schema=int(fields.get("schema", 0)),
        count=float(fields.get("count", 0)),
        sum=float(fields.get("sum", 0)),
        zero_threshold=float(fields.get("z_bucket_w", 0)),
        zero_count=float(fields.get("z_bucket", 0)),
        positive=buckets_of(int(fields.get("offset", 0)), lists.get("buckets", none)),
        negative=buckets_of(int(fields.get("n_offset", 0)), lists.get("n_buckets", none)),
        bounds=tuple(
            bound for bound in lists.get("custom_values", none).tolist() if not math.isinf(bound)
        ),
        hint=ResetHint(fields.get("counter_reset_hint", "unknown")),
    )
