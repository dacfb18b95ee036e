"""Metrics of spans, against what Python counts."""

from __future__ import annotations

import datetime
import math
import statistics
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from frazil.errors import Malformed, TooLarge
from frazil.languages.traceql import metrics, series
from frazil.languages.traceql.compare import compare_spans
from frazil.languages.traceql.metrics import span_metrics
from frazil.languages.traceql.nodes import CompareStage, MetricsStage
from frazil.languages.traceql.parser import parse_traceql
from frazil.languages.traceql.series import StepRange, TraceqlSeries, step_range, whole_range
from frazil.query.search.filters import EPOCH, MICROSECOND, Ask
from tests.languages.traceql.spans import SPANS, OneSpan, ancestors, ask
from tests.query.build import BEGIN_US

__all__ = ["ask"]

Says = Callable[[OneSpan], bool]
BEGIN = EPOCH + BEGIN_US * MICROSECOND
STEP = datetime.timedelta(seconds=1)
STEPS = step_range(BEGIN, BEGIN + 5 * STEP, STEP)
WHOLE = whole_range(BEGIN, BEGIN + 5 * STEP)


def run(ask: Ask, query: str, steps: StepRange = STEPS, **more: Any) -> list[TraceqlSeries]:
    parsed = parse_traceql(query)
    assert isinstance(parsed.metrics, MetricsStage)
    return span_metrics(ask, parsed, parsed.metrics, steps, **more)


def plain(found: Sequence[TraceqlSeries]) -> dict[tuple[str, ...], dict[int, float]]:
    """Labels as text -> second -> value."""
    return {
        tuple(str(next(iter(value.values()))) for _, value in each.labels): {
            (time - BEGIN_US) // 1_000_000: round(value, 9) for time, value in each.samples.items()
        }
        for each in found
    }


def seconds(says: Says) -> dict[int, list[OneSpan]]:
    found: dict[int, list[OneSpan]] = {}
    for span in SPANS:
        if says(span):
            found.setdefault(span.at_ms // 1000, []).append(span)
    return found


def filled(counts: dict[int, float]) -> dict[int, float]:
    return {second: counts.get(second, 0.0) for second in range(5)}


def durations(spans: list[OneSpan]) -> list[float]:
    return [span.nanos / 1e9 for span in spans]


@pytest.mark.parametrize(
    ("condition", "says"),
    [
        ("{ }", lambda s: True),
        ("{ kind = server }", lambda s: s.kind == "SERVER"),
        ("{ status = error } | { kind = server }", lambda s: s.id == 3),
        ("{ kind = server } >> { }", lambda s: any(a.kind == "SERVER" for a in ancestors(s))),
        ("{ nestedSetParent < 0 }", lambda s: s.parent is None),
        ("{ } | count() > 2", lambda s: s.trace in (1, 2)),
    ],
)
def test_counts(ask: Ask, condition: str, says: Says) -> None:
    """Counts and rates, whether SQL counts or Python; steps without spans are 0."""
    counts: dict[int, float] = {at: len(spans) for at, spans in seconds(says).items()}
    assert plain(run(ask, f"{condition} | count_over_time()")) == {
        ("count_over_time",): filled(counts)
    }
    assert plain(run(ask, f"{condition} | rate()")) == {("rate",): filled(counts)}
    ten = step_range(BEGIN, BEGIN + 5 * STEP, 5 * STEP)
    (one,) = run(ask, f"{condition} | rate()", ten)
    assert sum(one.samples.values()) * 5 == pytest.approx(sum(counts.values()))


@pytest.mark.parametrize("condition", ["{ }", "{ } || { name = `x` }"])
@pytest.mark.parametrize(
    ("function", "of"),
    [
        ("min_over_time(duration)", min),
        ("max_over_time(duration)", max),
        ("sum_over_time(duration)", math.fsum),
        ("avg_over_time(duration)", statistics.fmean),
        ("quantile_over_time(duration, .5)", statistics.median),
    ],
)
def test_numbers(
    ask: Ask, condition: str, function: str, of: Callable[[list[float]], float]
) -> None:
    """Durations are in seconds; SQL and Python agree."""
    wanted = {at: round(of(durations(spans)), 9) for at, spans in seconds(lambda s: True).items()}
    (found,) = plain(run(ask, f"{condition} | {function}")).values()
    assert found == pytest.approx(wanted)


def test_attributes_are_not_scaled(ask: Ask) -> None:
    """Only durations are divided by 10^9; other texts than numbers do not count."""
    (found,) = plain(run(ask, "{ } | max_over_time(span.http.status)")).values()
    assert found == {0: 500, 1: 404}
    assert run(ask, "{ } | max_over_time(span.user)") == []


@pytest.mark.parametrize("condition", ["{ }", "{ } || { name = `x` }"])
def test_groups(ask: Ask, condition: str) -> None:
    """A series for each value; a span without it is in a series of its own."""
    found = plain(
        run(ask, f"{condition} | count_over_time() by(span.cached, resource.service.name)")
    )
    assert found["True", "web"] == filled({0: 1})
    assert found["False", "cart"] == filled({0: 1, 1: 1})
    assert found["nil", "clock"] == filled({3: 1})
    assert sum(map(sum, (each.values() for each in found.values()))) == len(SPANS)


@pytest.mark.parametrize("condition", ["{ }", "{ } || { name = `x` }"])
def test_quantiles_and_histograms(ask: Ask, condition: str) -> None:
    """A series for each quantile, and for each power of two."""
    found = plain(run(ask, f"{condition} | quantile_over_time(duration, 0, 1)"))
    assert found["0.0",][0] == 0.0055
    assert found["1.0",][0] == 0.1
    buckets = plain(run(ask, f"{condition} | histogram_over_time(duration)", WHOLE))
    wanted: dict[str, int] = {}
    for span in SPANS:
        upper = 2.0 ** math.ceil(math.log2(span.nanos)) / 1e9
        wanted[str(upper)] = wanted.get(str(upper), 0) + 1
    assert {key: sum(values.values()) for (key,), values in buckets.items()} == wanted


def test_one_value_for_the_whole_range(ask: Ask) -> None:
    """An instant query has one step."""
    assert plain(run(ask, "{ } | rate()", WHOLE)) == {("rate",): {0: len(SPANS) / 5}}
    assert plain(run(ask, "{ status = ok } > { } | rate()", WHOLE)) == {}


@pytest.mark.parametrize("condition", ["{ }", "{ } || { name = `x` }"])
def test_ranks_and_filters(ask: Ask, condition: str) -> None:
    """topk and bottomk rank each step; a comparison keeps samples."""
    counted = f"{condition} | count_over_time() by(resource.service.name)"
    assert plain(run(ask, f"{counted} | topk(1)"))["web",][0] == 3
    assert plain(run(ask, f"{counted} | topk(1)"))["cart",] == {1: 2, 4: 0}
    assert plain(run(ask, f"{counted} | bottomk(1)"))["clock",][0] == 0
    assert plain(run(ask, f"{counted} > 1")) == {
        ("cart",): {0: 2, 1: 2},
        ("mailer",): {2: 2},
        ("web",): {0: 3},
    }
    assert plain(run(ask, f"{counted} | topk(1) > 2")) == {("web",): {0: 3}}


@pytest.mark.parametrize("condition", ["{ }", "{ } || { name = `x` }"])
def test_exemplars(ask: Ask, condition: str) -> None:
    """Each sample names the trace of its longest span, as long as there may be exemplars."""
    (found,) = run(ask, f"{condition} | max_over_time(duration)", exemplar_count=10)
    ids = [(int(each.trace_id, 16), each.value) for each in found.exemplars]
    assert ids == [(1, 0.1), (2, 0.03), (3, 0.25), (4, 0.00025)]
    (few,) = run(ask, f"{condition} | rate()", exemplar_count=2)
    assert len(few.exemplars) == 2
    (none,) = run(ask, f"{condition} | rate()")
    assert none.exemplars == []


def test_compare(ask: Ask) -> None:
    """Values of selected spans beside those of others, and totals."""
    parsed = parse_traceql("{ kind = server } | compare({ status = error }, 2)")
    assert isinstance(parsed.metrics, CompareStage)
    found = {
        tuple((key, str(next(iter(value.values()), "total"))) for key, value in each.labels): sum(
            each.samples.values()
        )
        for each in compare_spans(ask, parsed, parsed.metrics, STEPS)
    }
    meta, service = "__meta_type", "resource.service.name"
    assert found[(meta, "selection"), (service, "cart")] == 1
    assert found[(meta, "baseline"), (service, "cart")] == 2
    assert found[(meta, "baseline"), (service, "web")] == 2
    assert found[(meta, "baseline_total"), (service, "total")] == 4
    assert found[(meta, "selection_total"), (service, "total")] == 1
    assert found[(meta, "selection"), ("span.http.status", "500")] == 1
    assert found[(meta, "baseline"), ("rootName", "GET /")] == 4
    values = {key for key in found if key[1][0] == "span.http.status" and key[0][1] == "baseline"}
    assert len(values) == 2


def test_compare_says_what_it_needs(ask: Ask) -> None:
    for query in ("{ } >> { } | compare({ })", "{ } | compare({ }) | topk(2)"):
        parsed = parse_traceql(query)
        assert isinstance(parsed.metrics, CompareStage)
        with pytest.raises(Malformed, match=r"compare\(\)"):
            compare_spans(ask, parsed, parsed.metrics, STEPS)


def test_limits(ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    """Too many steps, series or samples are errors that say what to change."""
    with pytest.raises(Malformed, match="use a longer step"):
        step_range(BEGIN, BEGIN + 20_000 * STEP, STEP)
    with pytest.raises(Malformed, match="one millisecond"):
        step_range(BEGIN, BEGIN + STEP, MICROSECOND)
    monkeypatch.setattr(series, "SERIES_MAX", 3)
    with pytest.raises(TooLarge, match="more than 3 series"):
        run(ask, "{ } | rate() by(name)")
    monkeypatch.setattr(metrics, "ROWS_MAX", 2)
    with pytest.raises(TooLarge, match="more than 2 samples"):
        run(ask, "{ } | rate() by(name)")
