"""Metrics: which there are, their labels and exemplars, and their values over time, each beside a
plain account of the same points."""

from __future__ import annotations

import datetime
import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from frazil.errors import Malformed, TooLarge
from frazil.model.arrow import TABLES
from frazil.query import Engine
from frazil.query.search.filters import Ask, TimeRange
from frazil.query.telemetry import heatmaps
from frazil.query.telemetry import metric_series as series_module
from frazil.query.telemetry.heatmaps import ROWS_MAX, metric_heatmap
from frazil.query.telemetry.histograms import quantile_of
from frazil.query.telemetry.metric_series import LOOK_BACK, metric_series
from frazil.query.telemetry.metrics import exemplars, metric_labels, metric_names
from frazil.settings import QueryConfig
from tests.query.build import BEGIN_US, FixedClock, piece_of

SECOND = datetime.timedelta(seconds=1)
BEGIN = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC) + BEGIN_US // 1000 * SECOND / 1000
STEP = 10 * SECOND
LENGTH_S = 60
WITHIN = TimeRange(since=BEGIN, until=BEGIN + LENGTH_S * SECOND)


def point(at_s: float, kind: str = "gauge", **more: Any) -> dict[str, Any]:
    """A data point, so many seconds after the begin; `start_s` likewise."""
    time_us = BEGIN_US + int(at_s * 1_000_000)
    start_s = more.pop("start_s", None)
    start = 0 if start_s is None else (BEGIN_US + int(start_s * 1_000_000)) * 1000
    return {
        "_offset": more.pop("offset", 0),
        "time": time_us,
        "time_unix_nano": time_us * 1000,
        "service_name": "web",
        "metric_name": "m",
        "metric_type": kind,
        "start_time_unix_nano": start,
        **more,
    }


def counter(at_s: float, value: float, **more: Any) -> dict[str, Any]:
    how = {"aggregation_temporality": "CUMULATIVE", "is_monotonic": True, "start_s": -1000}
    return point(at_s, "sum", **{"value_double": value, **how, **more})


@pytest.fixture(scope="module")
def shared() -> Iterator[Callable[[Sequence[dict[str, Any]]], Ask]]:
    """One engine for all tests here; what it shows changes."""
    pieces: dict[str, Any] = {"metrics": ()}
    with Engine.open(lambda: pieces, TABLES, QueryConfig(), FixedClock()) as engine:

        def over(points: Sequence[dict[str, Any]]) -> Ask:
            half = len(points) // 2
            parts = [part for part in (points[:half], points[half:]) if part]
            pieces["metrics"] = tuple(piece_of("metrics", part) for part in parts)
            return lambda sql: engine.sql(sql).arrow()

        yield over


Over = Callable[[Sequence[dict[str, Any]]], Ask]


def values(ask: Ask, aggregate: str, **more: Any) -> dict[tuple[Any, ...], dict[int, float]]:
    """Labels -> seconds after the begin -> value."""
    more = {"within": WITHIN, "step": STEP, **more}
    answer = metric_series(ask, "m", aggregate=aggregate, **more)
    return {
        tuple(one.labels.values()): {
            round((at - BEGIN).total_seconds()): value for at, value in one.values
        }
        for one in answer.series
    }


def test_metric_names_have_type_and_unit(shared: Over) -> None:
    """By type, unit and temporality, with the sending services."""
    ask = shared(
        [
            point(0, value_double=1.0, unit="By", description="memory in use"),
            point(5, value_int=2, unit="By", service_name="cart"),
            counter(6, 1.0, metric_name="http.requests", unit="1"),
        ]
    )
    first, second = metric_names(ask)
    assert (first.name, first.type, first.temporality) == ("http.requests", "sum", "CUMULATIVE")
    assert first.is_monotonic is True
    assert (second.name, second.unit, second.description) == ("m", "By", "memory in use")
    assert (second.services, second.point_count) == (("cart", "web"), 2)
    assert second.newest == BEGIN + 5 * SECOND
    assert [one.name for one in metric_names(ask, search="REQ")] == ["http.requests"]
    assert [one.name for one in metric_names(ask, filters={"service_name": "cart"})] == ["m"]


def test_label_names_work_in_group_by(shared: Over) -> None:
    """Attributes, then those of resources; a key that is a column's name is told apart."""
    resource = [("host.name", "a")]
    ask = shared(
        [
            point(0, value_int=1, attributes=[("unit", "x"), ("z", "1")]),
            point(1, value_int=5, attributes=[("unit", "y")], resource_attributes=resource),
            point(2, value_int=9, attributes=[("unit", "y")], resource_attributes=resource),
        ]
    )
    found = metric_labels(ask, "m")
    assert [(one.name, one.values) for one in found] == [
        ("attribute.unit", (("y", 2), ("x", 1))),
        ("z", (("1", 1),)),
        ("resource.host.name", (("a", 2),)),
    ]
    grouped = values(ask, "max", group_by=[one.name for one in found])
    assert grouped == {("x", "1", None): {0: 1.0}, ("y", None, "a"): {0: 9.0}}


def test_exemplars_lead_to_traces(shared: Over) -> None:
    """Newest first, each once, with all labels."""

    def one(at: int, value: float) -> dict[str, Any]:
        return {
            "time_unix_nano": at,
            "value_double": value,
            "trace_id": "ab" * 16,
            "span_id": "cd" * 8,
            "filtered_attributes": [("user", "ann")],
        }

    ask = shared(
        [
            point(0, exemplars=[one(5, 1.5)], attributes=[("route", "/")]),
            point(1, exemplars=[one(5, 1.5), one(9, 2.5)], attributes=[("route", "/")]),
            point(2, exemplars=[]),
        ]
    )
    found = exemplars(ask, "m")
    assert [(e.time_unix_nano, e.value) for e in found] == [(9, 2.5), (5, 1.5)]
    assert found[0].labels == {"route": "/", "user": "ann"}
    assert (found[0].trace_id, found[0].span_id) == ("ab" * 16, "cd" * 8)
    assert len(exemplars(ask, "m", limit=1)) == 1


def test_gauges_over_time(shared: Over) -> None:
    """Every aggregate, in steps of whole multiples, by label; steps without points are left out."""
    a, b = [("host", "a")], [("host", "b")]
    ask = shared(
        [
            point(0, value_double=1.0, attributes=a),
            point(4, value_int=3, attributes=a),
            point(9.999999, value_double=8.0, attributes=b),
            point(20, value_double=5.0, attributes=b),
            point(25, value_double=7.0, attributes=b, flags=1),
            point(-1, value_double=99.0, attributes=a),
            point(LENGTH_S, value_double=99.0, attributes=a),
        ]
    )
    assert values(ask, "avg") == {(): {0: 4.0, 20: 5.0}}
    assert values(ask, "min") == {(): {0: 1.0, 20: 5.0}}
    assert values(ask, "count") == {(): {0: 3.0, 20: 1.0}}
    assert values(ask, "last") == {(): {0: 8.0, 20: 5.0}}
    assert values(ask, "sum") == {(): {0: 11.0, 20: 5.0}}, "the newest of each host, added up"
    assert values(ask, "max", group_by=["host"]) == {("b",): {0: 8.0, 20: 5.0}, ("a",): {0: 3.0}}
    assert values(ask, "p50", filters={"host": "b"}) == {(): {0: 8.0, 20: 5.0}}
    assert values(ask, "count", exclude={"host": "b"}) == {(): {0: 2.0}}


Stream = list[tuple[float, float]]
"""Seconds after the begin, and what was counted since the last point."""

_streams = st.lists(
    st.lists(
        st.tuples(st.integers(-400, 70), st.integers(0, 50), st.sampled_from("....RS")),
        max_size=8,
        unique_by=lambda one: one[0],
    ),
    min_size=1,
    max_size=4,
)


def told(streams: list[Any], are_delta: list[bool]) -> Iterator[tuple[int, dict[str, Any], float]]:
    """Points as a sender tells them, with what each must add: written by the counting itself, not
    by comparing points. R is a restart that can be seen in the start time only; S one that keeps
    it. A restart without a new start time can be told only when the total falls."""
    for number, (stream, is_delta) in enumerate(zip(streams, are_delta, strict=False)):
        total, start, before, is_known = 0, -1000.0, 0, False
        last = -1000.0
        for at, grown, mark in sorted(stream):
            if mark == "R":
                start, total, is_known = (at + last) / 2 if last > -1000 else at - 0.5, 0, False
            if mark == "S":
                total = 0
            total += grown
            began = start >= -LOOK_BACK.total_seconds()
            is_read = at >= -LOOK_BACK.total_seconds()
            if mark == "S" and is_known and total >= before:
                added: float = total - before
            elif is_known:
                added = grown
            else:
                added = total if began else 0
            value = grown if is_delta else total
            more: dict[str, Any] = {"start_s": start}
            if is_delta:
                more = {"start_s": last, "aggregation_temporality": "DELTA"}
                added = grown
            attributes = [("n", str(number))]
            yield number, counter(at, value, attributes=attributes, **more), added
            is_known = is_known or is_read
            before, last = total, at


@given(
    _streams,
    st.lists(st.booleans(), min_size=4, max_size=4) | st.just([True] * 4),
    st.booleans(),
    st.randoms(),
)
@settings(max_examples=60, deadline=None)
def test_increases_of_counters(
    shared: Over, streams: list[Any], are_delta: list[bool], is_grouped: bool, chance: Any
) -> None:
    """Whatever the order of points, with restarts, gaps, deltas and totals: what was counted is in
    the step of the point that told of it."""
    wanted: dict[tuple[Any, ...], dict[int, float]] = {}
    points = []
    for number, one, added in told(streams, are_delta):
        points.append(one)
        at = (one["time"] - BEGIN_US) // 1_000_000
        labels = (str(number),) if is_grouped else ()
        if 0 <= at < LENGTH_S:
            cell = wanted.setdefault(labels, {})
            cell[at // 10 * 10] = cell.get(at // 10 * 10, 0) + added
    chance.shuffle(points)
    ask = shared(points)
    found = values(ask, "increase", group_by=["n"] if is_grouped else [])
    assert _without_zeros(found) == _without_zeros(wanted)
    rates = values(ask, "rate", group_by=["n"] if is_grouped else [])
    assert {key: {at: v * 10 for at, v in some.items()} for key, some in rates.items()} == {
        key: {at: pytest.approx(v) for at, v in some.items()} for key, some in found.items()
    }


def _without_zeros(found: dict[Any, dict[int, float]]) -> dict[Any, dict[int, float]]:
    kept = {key: {at: v for at, v in some.items() if v} for key, some in found.items()}
    return {key: some for key, some in kept.items() if some}


def test_two_senders_with_equal_attributes(shared: Over) -> None:
    """Their totals are told apart by their start times, so their points may alternate."""
    ask = shared(
        [
            counter(at, value, start_s=start)
            for at, value, start in [(1, 100, -900), (2, 5, -800), (3, 101, -900), (4, 7, -800)]
        ]
    )
    assert values(ask, "increase") == {(): {0: 3.0}}


def test_sum_uses_the_newest_point_of_each_series(shared: Over) -> None:
    """Whenever its sender began; a NaN is no value."""
    a, b = [("host", "a")], [("host", "b")]
    ask = shared(
        [
            counter(1, 7.0, start_s=-50, attributes=a, is_monotonic=False),
            counter(2, 4.0, start_s=1.5, attributes=a, is_monotonic=False),
            counter(3, math.nan, start_s=1.5, attributes=a, is_monotonic=False),
            counter(4, 10.0, attributes=b, is_monotonic=False),
            counter(-1, 99.0, attributes=b, is_monotonic=False),
        ]
    )
    assert values(ask, "sum") == {(): {0: 14.0}}


def test_a_point_with_unknown_start_counts_nothing(shared: Over) -> None:
    """A start equal to the time of the point means an unknown start."""
    ask = shared([counter(1, 500.0, start_s=1), counter(2, 501.0, start_s=1)])
    assert values(ask, "increase") == {(): {0: 1.0}}


BOUNDS = [0.5, 1.0, 2.0, 5.0, 10.0]


def histogram_point(at_s: float, samples: Sequence[float], **more: Any) -> dict[str, Any]:
    counts = [0] * (len(BOUNDS) + 1)
    for sample in samples:
        counts[int(np.searchsorted(BOUNDS, sample))] += 1
    how = {"aggregation_temporality": "CUMULATIVE", "start_s": -1000, "sum": float(sum(samples))}
    return point(
        at_s,
        "histogram",
        **{
            **how,
            "count": len(samples),
            "bucket_counts": counts,
            "explicit_bounds": BOUNDS,
            **more,
        },
    )


_samples = st.lists(
    st.lists(st.floats(0.01, 9.99), min_size=1, max_size=20), min_size=1, max_size=6
)


@given(_samples, st.booleans(), st.sampled_from([0.0, 0.5, 0.9, 0.99, 1.0]))
@settings(max_examples=25, deadline=None)
def test_quantiles_of_explicit_histograms(
    shared: Over, batches: list[list[float]], is_delta: bool, share: float
) -> None:
    """In the bucket in which the value lies that was recorded; counts, sums and means are exact."""
    points = [histogram_point(-5, [])]
    all_of: list[float] = []
    for place, batch in enumerate(batches):
        all_of = batch if is_delta else all_of + batch
        how = {"aggregation_temporality": "DELTA"} if is_delta else {}
        points.append(histogram_point(place * 10 + 5, all_of, **how))
    if is_delta:
        points = points[1:]
    ask = shared(points)
    quantiles = values(ask, "quantile", quantile=share)[()]
    for place, batch in enumerate(batches):
        exact = float(np.quantile(batch, share, method="inverted_cdf"))
        edges = [0.0, *BOUNDS]
        at = int(np.searchsorted(BOUNDS, exact))
        assert edges[at] <= quantiles[place * 10] <= edges[at + 1]
    sizes = {place * 10: float(len(batch)) for place, batch in enumerate(batches)}
    assert values(ask, "count") == {(): sizes}
    sums = values(ask, "sum")[()]
    means = values(ask, "avg")[()]
    for place, batch in enumerate(batches):
        assert sums[place * 10] == pytest.approx(sum(batch))
        assert means[place * 10] == pytest.approx(sum(batch) / len(batch))


def test_a_histogram_reset_is_detected(shared: Over) -> None:
    """All of its new buckets count; what lies above the last bound is taken to lie on it."""
    ask = shared(
        [
            histogram_point(1, [0.1] * 8 + [7.0] * 2),
            histogram_point(5, [0.1] * 8 + [7.0] * 4),
            histogram_point(12, [3.0, 3.0]),
            histogram_point(22, [3.0, 3.0, 50.0]),
        ]
    )
    assert values(ask, "count") == {(): {0: 2.0, 10: 2.0, 20: 1.0}}
    assert values(ask, "quantile", quantile=1.0) == {(): {0: 10.0, 10: 5.0, 20: 10.0}}


def test_infinite_bounds(shared: Over) -> None:
    """Some senders write the last bound although it is none; nothing is said without bounds."""
    endless = {"explicit_bounds": [1.0, math.inf], "bucket_counts": [0, 4, 0], "count": 4}
    ask = shared([histogram_point(1, [], start_s=0, **endless)])
    assert values(ask, "p99") == {(): {0: 1.0}}
    none = {"explicit_bounds": [], "bucket_counts": [4], "count": 4}
    ask = shared([histogram_point(1, [], start_s=0, **none)])
    assert values(ask, "p99") == {}
    assert values(ask, "rate") == {(): {0: 0.4}}


FINEST = 6
"""The scale at which samples are counted."""


def exponential_point(
    at_s: float, samples: Sequence[float], scale: int, **more: Any
) -> dict[str, Any]:
    """What an SDK makes of samples: they are counted at a fine scale, and buckets are joined two by
    two until the scale is this one."""

    def side(some: list[float]) -> tuple[int | None, list[int] | None]:
        if not some:
            return None, None
        indexes = [(math.ceil(math.log2(x) * 2**FINEST) - 1) >> (FINEST - scale) for x in some]
        counts = [0] * (max(indexes) - min(indexes) + 1)
        for index in indexes:
            counts[index - min(indexes)] += 1
        return min(indexes), counts

    positive, negative = side([x for x in samples if x > 0]), side([-x for x in samples if x < 0])
    return point(
        at_s,
        "exponential_histogram",
        **{
            "aggregation_temporality": "CUMULATIVE",
            "start_s": -1000,
            "count": len(samples),
            "sum": float(sum(samples)),
            "scale": scale,
            "zero_count": sum(x == 0 for x in samples),
            "zero_threshold": 0.0,
            "positive_offset": positive[0],
            "positive_bucket_counts": positive[1],
            "negative_offset": negative[0],
            "negative_bucket_counts": negative[1],
            **more,
        },
    )


_numbers = st.one_of(
    st.floats(0.001, 1e6), st.floats(-1e6, -0.001), st.just(0.0), st.floats(0.9, 1.1)
)


@given(
    st.lists(st.lists(_numbers, min_size=1, max_size=20), min_size=1, max_size=5),
    st.lists(st.integers(-1, 5), min_size=5, max_size=5),
    st.booleans(),
    st.sampled_from([0.5, 0.9, 0.99, 1.0]),
)
@settings(max_examples=25, deadline=None)
def test_quantiles_of_exponential_histograms(
    shared: Over, batches: list[list[float]], scales: list[int], is_delta: bool, share: float
) -> None:
    """As near to the value that was recorded as the coarsest scale allows."""
    points: list[dict[str, Any]] = []
    all_of: list[float] = []
    if not is_delta:
        points.append(exponential_point(-5, [], scales[0]))
    for place, batch in enumerate(batches):
        all_of = batch if is_delta else all_of + batch
        how = {"aggregation_temporality": "DELTA"} if is_delta else {}
        points.append(exponential_point(place * 10 + 5, all_of, scales[place], **how))
    found = values(shared(points), "quantile", quantile=share)[()]
    base = 2.0 ** (2.0 ** -min(scales[: len(batches)] or scales))
    for place, batch in enumerate(batches):
        exact = float(np.quantile(batch, share, method="inverted_cdf"))
        slack = base * (1 + 1e-9)
        low, high = sorted([exact / slack, exact * slack])
        assert low <= found[place * 10] <= high


def test_quantiles_of_summaries_are_as_sent(shared: Over) -> None:
    """The newest point of each series; of several the largest. Counts grow as those of others."""

    def one(at: float, value: float, count: int, host: str) -> dict[str, Any]:
        return point(
            at,
            "summary",
            count=count,
            sum=count * 2.0,
            start_s=-1000,
            quantiles=[{"quantile": 0.5, "value": 1.0}, {"quantile": 0.99, "value": value}],
            attributes=[("host", host)],
        )

    ask = shared([one(1, 9.0, 10, "a"), one(2, 4.0, 12, "a"), one(3, 5.0, 7, "b")])
    assert values(ask, "p99") == {(): {0: 5.0}}
    assert values(ask, "p99", group_by=["host"]) == {("a",): {0: 4.0}, ("b",): {0: 5.0}}
    assert values(ask, "p42") == {}
    assert values(ask, "count") == {(): {0: 2.0}}
    assert values(ask, "avg") == {(): {0: 2.0}}


@given(
    st.lists(
        st.tuples(st.integers(-100, 100), st.floats(0.001, 10) | st.just(0), st.integers(1, 9)),
        min_size=1,
        max_size=9,
    ),
    st.floats(0, 1),
)
def test_a_quantile_lies_within_its_bucket(buckets: Any, share: float) -> None:
    """Also where buckets overlap or have no width, and it grows with its share."""
    low = np.array([one[0] for one in buckets])
    high = low + np.array([one[1] for one in buckets])
    count = np.array([one[2] for one in buckets], np.float64)
    found = quantile_of(low, high, count, share)
    lowest, highest = quantile_of(low, high, count, 0.0), quantile_of(low, high, count, 1.0)
    assert found is not None and lowest is not None and highest is not None
    assert low.min() == lowest <= found <= highest
    assert highest == pytest.approx(high.max())
    below = (
        np.where(
            high > low,
            np.clip((found - low) / np.where(high > low, high - low, 1), 0, 1),
            found >= low,
        )
        @ count
    )
    assert below >= share * count.sum() - 1e-6 * count.sum()


def test_invalid_queries_are_refused(shared: Over, monkeypatch: pytest.MonkeyPatch) -> None:
    """With what to ask instead."""
    ask = shared([point(0, value_int=1), counter(0, 1.0, is_monotonic=False, metric_name="up")])
    wrong: list[tuple[str, dict[str, Any], str]] = [
        ("median", {}, "no aggregate median"),
        ("rate", {}, "gauge, which has no rate"),
        ("quantile", {}, "only if"),
        ("avg", {"quantile": 0.5}, "only if"),
        ("quantile", {"quantile": 1.5}, "0 to 1"),
        ("avg", {"within": TimeRange(since=BEGIN)}, "needs since and until"),
        ("avg", {"step": datetime.timedelta(0)}, "too short"),
        ("avg", {"limit": 0}, "limit"),
        ("avg", {"group_by": ["attributes"]}, "many values"),
        ("avg", {"group_by": list("abcdefghi")}, "at most"),
    ]
    for aggregate, more, match in wrong:
        with pytest.raises(Malformed, match=match):
            values(ask, aggregate, **more)
    with pytest.raises(TooLarge, match="longer step"):
        values(ask, "avg", step=datetime.timedelta(milliseconds=1))
    with pytest.raises(Malformed, match="can decrease"):
        metric_series(ask, "up", within=WITHIN, step=STEP, aggregate="rate")
    monkeypatch.setattr(series_module, "POINTS_MAX", 1)
    ask = shared([counter(0, 1.0), counter(1, 2.0)])
    with pytest.raises(TooLarge, match="shorter range"):
        values(ask, "rate")
    both = shared([counter(0, 1.0), point(1, value_int=4)])
    with pytest.raises(Malformed, match="gauge and sum"):
        values(both, "avg")
    assert values(both, "avg", metric_type="gauge") == {(): {0: 4.0}}


def test_the_largest_series_are_kept(shared: Over) -> None:
    """And the answer says that there were more."""
    points = [point(at, value_int=at, attributes=[("n", str(at % 3))]) for at in (0, 1, 2, 11, 14)]
    ask = shared(points)
    more: dict[str, Any] = {"within": WITHIN, "step": STEP, "group_by": ["n"]}
    cut = metric_series(ask, "m", aggregate="last", limit=1, **more)
    assert (cut.is_cut, [one.labels for one in cut.series]) == (True, [{"n": "2"}])
    assert metric_series(ask, "nothing", aggregate="last", **more).series == ()


def test_a_delta_that_is_no_number_counts_nothing(shared: Over) -> None:
    delta = {"aggregation_temporality": "DELTA"}
    ask = shared([counter(at, value, **delta) for at, value in [(1, 5.0), (2, math.nan), (3, 7.0)]])
    assert values(ask, "increase") == {(): {0: 12.0}}
    assert values(ask, "rate") == {(): {0: 12.0 / STEP.total_seconds()}}


def cells(ask: Ask, **more: Any) -> dict[tuple[int, float, float], float]:
    """Seconds after the begin, low, high -> count; infinite without a bound."""
    found = metric_heatmap(ask, "m", within=WITHIN, step=STEP, **more)
    assert len(found.buckets) <= ROWS_MAX
    if found.since is None:
        return {}
    first_s = round((found.since - BEGIN).total_seconds())
    bounds = [
        (-math.inf if low is None else low, math.inf if high is None else high)
        for low, high in ((bucket.low, bucket.high) for bucket in found.buckets)
    ]
    assert bounds == sorted(bounds)
    return {(first_s + 10 * cell.step, *bounds[cell.bucket]): cell.count for cell in found.cells}


@given(_samples, st.booleans())
@settings(max_examples=15, deadline=None)
def test_a_heatmap_counts_every_value_in_its_bucket(
    shared: Over, batches: list[list[float]], is_delta: bool
) -> None:
    """Also beside a series with other bounds: then rows contain buckets of both as a whole."""
    points = [] if is_delta else [histogram_point(-5, [])]
    all_of: list[float] = []
    for place, batch in enumerate(batches):
        all_of = batch if is_delta else all_of + batch
        how = {"aggregation_temporality": "DELTA"} if is_delta else {}
        points.append(histogram_point(place * 10 + 5, all_of, **how))
    wanted = Counter(
        (place * 10, edges[at], edges[at + 1])
        for place, batch in enumerate(batches)
        for edges in [[-math.inf, *BOUNDS, math.inf]]
        for at in map(int, np.searchsorted(BOUNDS, batch))
    )
    assert cells(shared(points)) == wanted
    other = {"explicit_bounds": [1.0, 7.0], "bucket_counts": [1, 2, 4], "count": 7}
    delta = {"aggregation_temporality": "DELTA", "attributes": [("a", "b")]}
    points.append(histogram_point(5, [], **other, **delta))
    edges = [-math.inf, 1.0, 7.0, math.inf]
    wanted += Counter({(0, edges[at], edges[at + 1]): 2**at for at in range(3)})
    found = cells(shared(points))
    assert sum(found.values()) == sum(wanted.values())
    for (at_s, low, high), count in found.items():
        assert count == sum(
            number
            for (step, begin, end), number in wanted.items()
            if step == at_s and begin >= low and end <= high
        )


@given(
    st.lists(st.lists(_numbers, min_size=1, max_size=20), min_size=1, max_size=4),
    st.lists(st.integers(-1, 5), min_size=4, max_size=4),
)
@settings(max_examples=15, deadline=None)
def test_a_heatmap_of_exponential_histograms_loses_nothing(
    shared: Over, batches: list[list[float]], scales: list[int]
) -> None:
    """Each value lies in its row, within the rounding of the bounds, whatever was merged."""
    points = [
        exponential_point(place * 10 + 5, batch, scale, aggregation_temporality="DELTA")
        for place, (batch, scale) in enumerate(zip(batches, scales, strict=False))
    ]
    found = cells(shared(points))
    for place, batch in enumerate(batches):
        rows = {key[1:]: count for key, count in found.items() if key[0] == place * 10}
        assert sum(rows.values()) == len(batch)
        for (low, high), count in rows.items():
            slack = 1e-9 * max(abs(low), abs(high))
            assert sum(low - slack <= value <= high + slack for value in batch) >= count


def test_heatmaps_need_a_histogram_and_are_bounded(
    shared: Over, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert cells(shared([])) == {}
    with pytest.raises(Malformed, match="m is a gauge, which has no buckets"):
        cells(shared([point(1, value_double=1.0)]))
    ask = shared([histogram_point(-5, []), histogram_point(5, [0.1, 3.0])])
    monkeypatch.setattr(heatmaps, "CELLS_MAX", 1)
    with pytest.raises(TooLarge, match="more than 1 cells"):
        cells(ask)
