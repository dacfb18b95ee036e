"""What changed in a service: two versions, or two time ranges, side by side."""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from typing import Annotated, Any

from frazil.model import doc
from frazil.query.search.filters import Ask, TimeRange, if_set, text, where
from frazil.query.search.severity import severity_of
from frazil.query.sql.entry_spans import is_entry
from frazil.query.telemetry.deployments import VERSION
from frazil.query.telemetry.log_patterns import cluster_lines, masked_lines, one_in, query_of
from frazil.query.telemetry.services import ERRORS, percentile

OPERATIONS_MAX = 100
ATTRIBUTES_MAX = 20
VALUES_MAX = 2000
"""Most frequent values of attributes that are read of each side."""
REQUESTS_READ_MAX = 100_000
"""Requests of a side whose attributes are read; of more, an even sample. Shares of that many are
right to half a percent."""
RECORDS_READ_MAX = 500_000
"""Log records of a side that are read for their patterns; of more, an even sample."""
PATTERNS_MAX = 50
SHARE_MIN = 0.02
"""Smallest difference of shares that is listed."""
PER_INSTANCE = frozenset(
    {
        "resource.service.version",
        "resource.service.instance.id",
        "resource.k8s.pod.name",
        "resource.k8s.pod.uid",
        "resource.k8s.replicaset.name",
        "resource.container.id",
        "resource.host.id",
        "resource.process.pid",
    }
)
"""Attributes that always differ between two versions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """One side: the requests of a service in a time range, and perhaps of one version."""

    service: str
    within: TimeRange
    version: str | None = None

    def conditions(self) -> list[str]:
        return [
            f"service_name = {text(self.service)}",
            *self.within.conditions(),
            *if_set(VERSION + " = {}", self.version, text),
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class SideSummary:
    """Requests, errors and latencies of one side."""

    request_count: int
    error_count: int
    p50_nano: int | None
    p95_nano: int | None
    p99_nano: int | None
    rate: Annotated[
        float, doc("Requests per second: of the range, or from first to last of a version.")
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationChange:
    """One operation on both sides; null where it has no requests."""

    operation: str
    baseline: SideSummary | None
    current: SideSummary | None


@dataclass(frozen=True, slots=True, kw_only=True)
class AttributeChange:
    """A value that is more or less frequent than before, as shares of the requests."""

    name: Annotated[str, doc("As in filters: `http.route`, `resource.host.name`.")]
    value: str
    baseline_share: float
    current_share: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PatternChange:
    """A log pattern that one side does not have."""

    pattern: str
    severity: str
    count: int
    query: Annotated[str, doc("Query for the search box that finds its records.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Differences between a baseline and the current side."""

    baseline: SideSummary
    current: SideSummary
    operations: Annotated[list[OperationChange], doc("Busiest first.")]
    attributes: Annotated[list[AttributeChange], doc("Largest difference first.")]
    new_patterns: Annotated[list[PatternChange], doc("Log patterns of the current side only.")]
    gone_patterns: Annotated[list[PatternChange], doc("Log patterns of the baseline only.")]
    records_sampled_every: Annotated[
        int, doc("1: all log records were read. n: one of n; rare patterns may be missing.")
    ]


def compare(ask: Ask, baseline: Selection, current: Selection) -> Comparison:
    """Compare two sides of one service."""
    before, after = _summary(ask, baseline), _summary(ask, current)
    every = max(_sampled_every(ask, side) for side in (baseline, current))
    gone, new = _patterns(ask, baseline, current, every)
    return Comparison(
        baseline=before,
        current=after,
        operations=_operations(ask, baseline, current),
        attributes=_attributes(ask, baseline, current, before.request_count, after.request_count),
        new_patterns=new,
        gone_patterns=gone,
        records_sampled_every=every,
    )


_COLUMNS = (
    f"count(*) AS request_count, {ERRORS} AS error_count, {percentile(0.5)} AS p50_nano, "
    f"{percentile(0.95)} AS p95_nano, {percentile(0.99)} AS p99_nano, min(time) AS first, "
    "max(time) AS last"
)


def _summary(ask: Ask, side: Selection) -> SideSummary:
    rows = ask(f"SELECT {_COLUMNS} FROM spans {where([*side.conditions(), is_entry()])}")
    return _side(rows.to_pylist()[0], side)


def _side(row: dict[str, Any], side: Selection) -> SideSummary:
    first, last = row.pop("first"), row.pop("last")
    since, until = side.within.since, side.within.until
    if side.version is not None or since is None or until is None:
        since, until = first, last
    seconds = (until - since).total_seconds() if since and until else 0.0
    row["error_count"] = row["error_count"] or 0
    return SideSummary(**row, rate=row["request_count"] / max(1.0, seconds))


def _operations(ask: Ask, baseline: Selection, current: Selection) -> list[OperationChange]:
    sides = [
        {
            row.pop("name"): _side(row, side)
            for row in ask(
                f"SELECT name, {_COLUMNS} FROM spans {where([*side.conditions(), is_entry()])} "
                f"GROUP BY name ORDER BY request_count DESC, name LIMIT {OPERATIONS_MAX}"
            ).to_pylist()
        }
        for side in (baseline, current)
    ]
    before, after = sides
    changes = [
        OperationChange(operation=name, baseline=before.get(name), current=after.get(name))
        for name in before | after
    ]
    changes.sort(key=lambda one: (-_requests(one.current) - _requests(one.baseline), one.operation))
    return changes


def _requests(side: SideSummary | None) -> int:
    return 0 if side is None else side.request_count


def _attributes(
    ask: Ask, baseline: Selection, current: Selection, before_count: int, after_count: int
) -> list[AttributeChange]:
    before = _shares(ask, baseline, before_count)
    after = _shares(ask, current, after_count)
    ignored = PER_INSTANCE if current.version is not None else frozenset()
    changes = [
        AttributeChange(
            name=name,
            value=value,
            baseline_share=before.get((name, value), 0.0),
            current_share=after.get((name, value), 0.0),
        )
        for name, value in before | after
        if name not in ignored
    ]
    listed = [one for one in changes if _difference(one) >= SHARE_MIN]
    listed.sort(key=lambda one: (-_difference(one), one.name, one.value))
    return listed[:ATTRIBUTES_MAX]


def _difference(change: AttributeChange) -> float:
    return abs(change.current_share - change.baseline_share)


def _shares(ask: Ask, side: Selection, request_count: int) -> dict[tuple[str, str], float]:
    """Return the share of requests that have each of the most frequent values, of attributes of
    requests and of their resources."""
    conditions = [*side.conditions(), is_entry()]
    every = -(-request_count // REQUESTS_READ_MAX)
    if every > 1:
        conditions.append(one_in(every))
        rows = ask(f"SELECT count(*) AS n FROM spans {where(conditions)}")
        request_count = int(rows["n"][0].as_py())
    found: dict[tuple[str, str], float] = {}
    for prefix, column in (("", "attributes"), ("resource.", "resource_attributes")):
        pairs = (
            f"SELECT unnest(map_keys({column})) AS name, unnest(map_values({column})) AS value "
            f"FROM spans {where(conditions)}"
        )
        rows = ask(
            f"SELECT name, value, count(*) AS count FROM ({pairs}) WHERE value IS NOT NULL "
            f"GROUP BY name, value ORDER BY count DESC, name, value LIMIT {VALUES_MAX}"
        )
        for row in rows.to_pylist():
            found[prefix + row["name"], row["value"]] = row["count"] / max(1, request_count)
    return found


def _sampled_every(ask: Ask, side: Selection) -> int:
    """Return 1 to read all log records of a side, or n to read one of n."""
    rows = ask(f"SELECT count(*) AS n FROM logs {where(side.conditions())}")
    return max(1, -(-int(rows["n"][0].as_py()) // RECORDS_READ_MAX))


def _patterns(
    ask: Ask, baseline: Selection, current: Selection, every: int
) -> tuple[list[PatternChange], list[PatternChange]]:
    """Return the log patterns that only the baseline has, and those that only the current side
    has. Both sides are clustered together, so that their patterns are equally wide."""
    century = datetime.timedelta(days=36_500)  # one step for all rows
    rows = []
    for is_current, side in ((False, baseline), (True, current)):
        sample = [one_in(every)] if every > 1 else []
        for row in masked_lines(ask, century, [*side.conditions(), *sample]):
            rows.append({**row, "step": is_current})
    rows.sort(key=lambda row: (-row["count"], row["line"], row["step"]))
    only: tuple[list[PatternChange], list[PatternChange]] = ([], [])
    for service, clusters in cluster_lines(rows).items():
        for cluster in clusters:
            if len(cluster.trend) == 1:
                ((is_current, count),) = cluster.trend.items()
                pattern = "".join(cluster.parts)
                only[bool(is_current)].append(
                    PatternChange(
                        pattern=pattern,
                        severity=severity_of(cluster.severity_number),
                        count=count * every,
                        query=query_of(service, pattern),
                    )
                )
    for changes in only:
        changes.sort(key=lambda one: (-one.count, one.pattern))
        del changes[PATTERNS_MAX:]
    return only
