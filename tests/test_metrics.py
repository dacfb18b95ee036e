"""Metrics: every change is counted, under one name, from any thread."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from frazil import metrics
from frazil.metrics import Counter, Gauge, Histogram, Sample, collect, quantile


@pytest.fixture(autouse=True)
def own_metrics(monkeypatch: pytest.MonkeyPatch) -> None:
    """Declare into an empty house, and leave the real one as it was."""
    monkeypatch.setattr(metrics, "_DECLARED", {})


def shown(samples: Iterator[Sample]) -> dict[tuple[str, metrics.Labels], float]:
    return {(sample.name, sample.labels): sample.value for sample in samples}


def test_a_counter_counts_per_label_set() -> None:
    """The order of labels does not matter."""
    counter = Counter("frazil.test.things.count", "Things.")
    counter.add()
    counter.add(2.5)
    counter.add(3, topic="t", reason="full")
    counter.add(4, reason="full", topic="t")
    assert counter.value() == 3.5
    assert counter.value(topic="t", reason="full") == 7
    assert counter.value(topic="other") == 0
    assert shown(collect()) == {
        ("frazil.test.things.count", ()): 3.5,
        ("frazil.test.things.count", (("reason", "full"), ("topic", "t"))): 7,
    }


def test_counters_and_histograms_are_thread_safe() -> None:
    counter = Counter("frazil.test.things.count", "Things.")
    histogram = Histogram("frazil.test.work.ms", "Work.", bounds=(1, 2))
    begin = threading.Barrier(8)

    def move() -> None:
        begin.wait()
        for _ in range(2000):
            counter.add(by="thread")
            histogram.record(1.5)

    threads = [threading.Thread(target=move) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counter.value(by="thread") == 16_000
    assert shown(collect())["frazil.test.work.ms.count", ()] == 16_000


def test_a_gauge_has_the_latest_value() -> None:
    """Per label set."""
    gauge = Gauge("frazil.test.queue.bytes", "Waiting.")
    assert gauge.value() == 0
    gauge.set(7)
    gauge.set(5)
    gauge.set(9, topic="t")
    assert (gauge.value(), gauge.value(topic="t")) == (5, 9)
    assert shown(collect()) == {
        ("frazil.test.queue.bytes", ()): 5,
        ("frazil.test.queue.bytes", (("topic", "t"),)): 9,
    }


def test_a_histogram_counts_up_to_each_bound() -> None:
    """Buckets are cumulative and include their bound; the last one has everything."""
    histogram = Histogram("frazil.test.work.ms", "Work.", bounds=(1, 10))
    for value in (0.5, 1, 1.5, 10, 10.5, 1e9):
        histogram.record(value)
    assert shown(collect()) == {
        ("frazil.test.work.ms.bucket", (("le", "1"),)): 2,
        ("frazil.test.work.ms.bucket", (("le", "10"),)): 4,
        ("frazil.test.work.ms.bucket", (("le", "inf"),)): 6,
        ("frazil.test.work.ms.count", ()): 6,
        ("frazil.test.work.ms.sum", ()): pytest.approx(1e9 + 23.5),
    }


def test_a_histogram_without_values_has_samples() -> None:
    Histogram("frazil.test.work.ms", "Work.")
    assert {sample.value for sample in collect()} == {0}


def test_a_name_is_declared_once() -> None:
    Counter("frazil.test.things.count", "Things.")
    with pytest.raises(AssertionError, match=r"frazil\.test\.things\.count is declared twice"):
        Gauge("frazil.test.things.count", "Things.")


def test_samples_are_sorted_by_name() -> None:
    for name in ("frazil.b.x.count", "frazil.a.x.count", "frazil.c.x.count"):
        Counter(name, "X.").add()
    assert [sample.name[7] for sample in collect()] == ["a", "b", "c"]


def test_a_quantile_is_interpolated() -> None:
    """Linear between two bounds; the last bound above it."""
    bounds = (1, 2, 10)
    assert quantile(bounds, (0, 0, 0, 0), 0.5) is None
    assert quantile(bounds, (4, 0, 0, 0), 0.5) == 0.5
    assert quantile(bounds, (1, 0, 1, 0), 1.0) == 10
    assert quantile(bounds, (1, 0, 2, 0), 2 / 3) == 6
    assert quantile(bounds, (0, 0, 0, 3), 0.01) == 10
