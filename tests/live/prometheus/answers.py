"""Compare two answers to a range query."""

from __future__ import annotations

import math
from typing import Any

TOLERANCE = 1e-5
Series = dict[tuple[tuple[str, str], ...], dict[float, Any]]


def differences(ours: dict[str, Any], theirs: dict[str, Any]) -> list[str]:
    """Return how the data of two answers differ."""
    if ours["resultType"] != theirs["resultType"]:
        return [f"type {ours['resultType']} is not {theirs['resultType']}"]
    one, other = _series(ours), _series(theirs)
    found = [f"lacks {dict(labels)}" for labels in other.keys() - one.keys()]
    found += [f"has {dict(labels)} as well" for labels in one.keys() - other.keys()]
    for labels in one.keys() & other.keys():
        found += [f"{dict(labels)}: {what}" for what in _points(one[labels], other[labels])]
    return found


def _series(data: dict[str, Any]) -> Series:
    found: Series = {}
    for each in data["result"]:
        points = [*each.get("values", ()), *each.get("histograms", ())]
        found[tuple(sorted(each["metric"].items()))] = dict(points)
    return found


def _points(ours: dict[float, Any], theirs: dict[float, Any]) -> list[str]:
    if ours.keys() != theirs.keys():
        more, less = sorted(ours.keys() - theirs.keys()), sorted(theirs.keys() - ours.keys())
        return [f"points at {more[:3]} too many, {less[:3]} missing"]
    return [
        f"{ours[time]} is not {theirs[time]} at {time}"
        for time in sorted(ours)
        if not _same(ours[time], theirs[time])
    ][:3]


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, dict) and isinstance(other, dict):
        return _same_histograms(one, other)
    if isinstance(one, dict) or isinstance(other, dict):
        return False
    x, y = float(one), float(other)
    if math.isnan(x) or math.isnan(y):
        return math.isnan(x) and math.isnan(y)
    return x == y or math.isclose(x, y, rel_tol=TOLERANCE, abs_tol=1e-12)


def _same_histograms(one: dict[str, Any], other: dict[str, Any]) -> bool:
    numbers = all(_same(one[name], other[name]) for name in ("count", "sum"))
    buckets, others = one.get("buckets", ()), other.get("buckets", ())
    return (
        numbers
        and len(buckets) == len(others)
        and all(
            left[0] == right[0] and all(map(_same, left[1:], right[1:]))
            for left, right in zip(buckets, others, strict=True)
        )
    )
