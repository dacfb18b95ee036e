"""Rows of the table `metrics` as series of Prometheus."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from frazil.errors import Malformed, TooLarge
from frazil.languages import (
    KnownLabels,
    LabelMatcher,
    MetricDirectory,
    TablePointSource,
)
from frazil.languages.prometheus import part_reader
from frazil.languages.prometheus.families import SeriesPart
from frazil.languages.promql.points import PointSet
from frazil.model import SystemClock
from frazil.query import Engine
from tests.query.build import BEGIN_US, engine_over, piece_of, shared

BEGIN_MS = BEGIN_US // 1000
CART = [("service.instance.id", "cart-1"), ("service.name", "cart"), ("service.namespace", "shop")]
OTHER_HOST = sorted([*CART, ("host.name", "b")])
STALE = 0x7FF0000000000002

Select = Callable[..., PointSet]
_offsets = itertools.count()


def point(name: str, kind: str, at: int, **more: Any) -> dict[str, Any]:
    """A row, `at` seconds after `BEGIN_US`."""
    return {
        "_offset": next(_offsets),
        "time": BEGIN_US + at * 1_000_000,
        "service_name": "cart",
        "metric_name": name,
        "metric_type": kind,
        "resource_attributes": CART,
        "attributes": [],
        **more,
    }


def total(name: str, at: int, value: float, **more: Any) -> dict[str, Any]:
    return point(name, "sum", at, is_monotonic=True, value_double=value, **more)


ROUTE = [("http.route", "/a")]
HISTOGRAM = {"unit": "s", "explicit_bounds": [0.5, 10.0], "bucket_counts": [1, 2, 4]}
ROWS = [
    total("http.requests", 20, 3.0, attributes=ROUTE),
    total("http.requests", 10, 1.0, attributes=ROUTE),
    total("http.requests", 10, 9.0, attributes=ROUTE),  # the first one counts
    total("http.requests", 30, 5.0, attributes=ROUTE, resource_attributes=OTHER_HOST),
    total("http.requests", 30, 7.0, attributes=[("http.route", "/b")]),
    total("mails", 10, 2.0, aggregation_temporality="DELTA"),
    total("mixed", 10, 2.0, aggregation_temporality="DELTA"),
    total("mixed", 20, 4.0, aggregation_temporality="CUMULATIVE"),
    point("cpu", "gauge", 10, value_int=4, unit="1"),
    point("cpu", "gauge", 20, unit="1", flags=1),
    point("latency", "histogram", 10, count=7, sum=2.5, **HISTOGRAM),
    point("latency", "histogram", 20, count=7, **HISTOGRAM),
    point("gc", "summary", 10, count=3, sum=1.5, quantiles=[{"quantile": 0.5, "value": 0.1}]),
    point(
        "native",
        "exponential_histogram",
        10,
        count=6,
        sum=3.0,
        scale=9,
        zero_count=1,
        positive_offset=-1,
        positive_bucket_counts=[1, 2, 2],
    ),
    point("a.b", "gauge", 10, value_double=1.0, attributes=[("a.b", "x"), ("a_b", "y")]),
]


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    with engine_over({"metrics": [shared(piece_of("metrics", ROWS))]}) as opened:
        yield opened


@pytest.fixture
def select(engine: Engine) -> Select:
    def ask(text: str) -> pa.Table:
        with engine.sql(text) as result:
            return result.arrow()

    directory, known = MetricDirectory(SystemClock()), KnownLabels()

    def select(name: str, *more: LabelMatcher, operator: Any = "=") -> PointSet:
        source = TablePointSource(ask, directory, known, lambda: None)
        matchers = [LabelMatcher("__name__", operator, name), *more]
        return source.select(matchers, BEGIN_MS, BEGIN_MS + 60_000)

    return select


def points(found: PointSet) -> dict[tuple[str, ...], list[tuple[int, float]]]:
    """Values of labels but for the name and the identity -> seconds and values."""
    hidden = ("__name__", "job", "instance")
    return {
        tuple(value for name, value in labels if name not in hidden): [
            ((time - BEGIN_MS) // 1000, value)
            for time, value in zip(
                found.times_ms[begin:end].tolist(), found.values[begin:end].tolist(), strict=True
            )
        ]
        for labels, begin, end in zip(found.labels, found.starts, found.starts[1:], strict=False)
    }


def test_points_are_sorted_and_unique(select: Select) -> None:
    """Resources with the same job and instance share a series; of equal times the first counts."""
    found = select("http_requests_total")
    assert points(found) == {("/a",): [(10, 1.0), (20, 3.0), (30, 5.0)], ("/b",): [(30, 7.0)]}
    assert found.labels[0] == (
        ("__name__", "http_requests_total"),
        ("http_route", "/a"),
        ("instance", "cart-1"),
        ("job", "shop/cart"),
    )


def test_a_selection_may_be_read_in_slices(select: Select, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = points(select("http_requests_total"))
    monkeypatch.setitem(part_reader._SLICE_ROWS, SeriesPart.VALUE, 2)
    assert points(select("http_requests_total")) == whole


def test_names_of_opentelemetry_keep_their_labels(select: Select) -> None:
    found = select("http.requests", LabelMatcher("http.route", "=~", "/a|/c"))
    assert [dict(labels)["http.route"] for labels in found.labels] == ["/a"]
    assert points(select("http_requests_total", LabelMatcher("http.route", "=", "/b"))) == {
        ("/b",): [(30, 7.0)]
    }


def test_deltas_are_marked_and_never_mixed(select: Select) -> None:
    assert select("mails_total").is_delta.tolist() == [True]
    mixed = select("mixed_total")
    assert points(mixed) == {(): [(20, 4.0)]}
    assert mixed.is_delta.tolist() == [False]


def test_a_point_without_a_value_ends_the_series(select: Select) -> None:
    found = select("cpu_ratio")
    assert found.values[0] == 4.0
    assert found.values.view(np.uint64)[1] == STALE


def test_buckets_are_running_totals(select: Select) -> None:
    found = points(select("latency_seconds_bucket"))
    assert found == {(le,): [(10, n), (20, n)] for le, n in (("0.5", 1), ("10", 3), ("+Inf", 7))}
    assert points(select("latency_seconds_sum")) == {(): [(10, 2.5)]}
    assert points(select("latency_seconds_count")) == {(): [(10, 7), (20, 7)]}
    some = select("latency_seconds_bucket", LabelMatcher("le", "!=", "+Inf"))
    assert len(some.labels) == 2


def test_summaries_have_quantiles(select: Select) -> None:
    assert points(select("gc")) == {("0.5",): [(10, 0.1)]}
    assert points(select("gc_count")) == {(): [(10, 3)]}


def test_fine_histograms_are_merged(select: Select) -> None:
    """Scale 9 becomes 8: OTLP's buckets -1, 0, 1 are ours 0 and 1."""
    found = select("native")
    assert found.histograms is not None
    (histogram,) = found.histograms
    assert histogram is not None
    assert (histogram.schema, histogram.count, histogram.zero_count) == (8, 6, 1)
    assert (histogram.positive.first, histogram.positive.counts.tolist()) == (0, [1, 4])


def test_labels_with_the_same_name_are_joined(select: Select) -> None:
    assert points(select("a_b")) == {("x;y",): [(10, 1.0)]}


def test_target_info_has_the_other_attributes(select: Select) -> None:
    """Once for the request of the other host; the resource that is only an identity has none."""
    assert points(select("target_info")) == {("b",): [(30, 1.0)]}


def test_patterns_select_several_metrics(select: Select) -> None:
    """By Prometheus' names; kinds of values are read apart."""
    found = select("latency.+|cpu.*|native", operator="=~")
    assert {dict(labels)["__name__"] for labels in found.labels} == {
        *("latency_seconds_bucket", "latency_seconds_sum", "latency_seconds_count"),
        *("cpu_ratio", "native"),
    }


def test_a_bad_pattern_is_an_error(select: Select) -> None:
    with pytest.raises(Malformed, match="cannot be parsed"):
        select("a(", operator="=~")


def test_too_many_points_are_an_error(select: Select, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(part_reader._SLICE_ROWS, SeriesPart.VALUE, 1)
    monkeypatch.setattr(part_reader, "SLICES_MAX", 2)
    with pytest.raises(TooLarge, match="reads 5 points of value, more than the limit of 2"):
        select("http_requests_total")
