"""What Prometheus' own tests do not say: limits, cancelling, refusals, delta temporality."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from frazil.errors import FrazilError, Malformed, TooLarge, Unavailable
from frazil.languages.promql.answer import Answer
from frazil.languages.promql.evaluate import evaluate_instant, evaluate_range, selections
from frazil.languages.promql.evaluation import PromqlLimits
from frazil.languages.promql.failures import FailedQuery, UnsupportedQuery
from frazil.languages.promql.parser import parse, prettified
from frazil.languages.promql.points import LabelMatcher, PointSet
from frazil.languages.promql.syntax_json import syntax_json
from frazil.results import CancelToken
from tests.languages.promql.memory import MemoryPoints
from tests.languages.promql.notation import series_of

MINUTE = 60_000


def source_of(*lines: str, deltas: bool = False) -> MemoryPoints:
    """Series with a point per minute, from minute 0."""
    source = MemoryPoints()
    for line in lines:
        labels, points = series_of(line)
        source.add(labels, range(0, len(points) * MINUTE, MINUTE), points)
        if deltas:
            source.deltas.add(labels)
    return source


def only(answer: Answer) -> list[float]:
    """The values of the only series."""
    (series,) = answer.all_series()
    return [float(value) for value in series.values]


COUNTER = source_of('requests_total{job="a"} 0+60x20', 'requests_total{job="b"} 0+120x20')


@pytest.mark.parametrize(
    ("query", "error", "says"),
    [
        ("sum(", Malformed, "unclosed"),
        ("rate(a)", Malformed, "expected type matrix"),
        ("a[5m]", Malformed, "range query"),
        ('"text"', Malformed, "range query"),
        ("a @ 1e300", Malformed, "not a time"),
        ("a[999999999y]", Malformed, "too long"),
        ("a offset 99999y", Malformed, "too long"),
        ("limit_ratio(0.5, a)", UnsupportedQuery, "limit_ratio is experimental"),
        ("info(a)", UnsupportedQuery, "info is experimental"),
        ("a + fill(0) b", UnsupportedQuery, "fill"),
        ("rate(a[5m] smoothed)", UnsupportedQuery, "modifier smoothed"),
        ("a[2 * 3m]", UnsupportedQuery, "arithmetic in durations"),
        ("a offset step()", UnsupportedQuery, "arithmetic in durations"),
        ('a{b="c" or d="e"}', UnsupportedQuery, "regular expression"),
        ("1" + "+1" * 600, TooLarge, "600 operators"),
        ("1" + "+1" * 400, TooLarge, "nests more than"),
        ("-" * 499 + "(1)", TooLarge, "nests more than"),
        ("(" * 200 + "1" + ")" * 200, TooLarge, "nested parentheses"),
        ("a" * 200_000, TooLarge, "characters"),
        ("topk(1e30, a)", FailedQuery, "overflows int64"),
    ],
)
def test_a_query_is_refused(query: str, error: type[FrazilError], says: str) -> None:
    """Guarantees: a query that cannot be answered fails with the class and words that help, on a
    thread as small as those of the server, and never takes the process with it."""
    caught: list[FrazilError] = []

    def evaluate() -> None:
        try:
            evaluate_range(query, COUNTER, 0, MINUTE, MINUTE)
        except FrazilError as refused:
            caught.append(refused)

    thread = threading.Thread(target=evaluate)
    thread.start()
    thread.join()
    assert len(caught) == 1
    assert type(caught[0]) is error
    assert says in str(caught[0])


@pytest.mark.parametrize(
    ("limits", "query", "says"),
    [
        (PromqlLimits(steps_max=20), "requests_total", "21 steps"),
        (PromqlLimits(series_max=1), "requests_total", "2 series"),
        (PromqlLimits(samples_max=60), "requests_total", "60 samples"),
        (
            PromqlLimits(samples_max=500),
            "count_values('v', requests_total)",
            "500 samples",
        ),
        (
            PromqlLimits(),
            f"label_replace(requests_total, 'x', '{'$1' * 2**15}', '__name__', '(.*)')",
            "letters",
        ),
        (PromqlLimits(subquery_steps_max=100), "sum_over_time(vector(1)[1h:1s])", "longer step"),
    ],
)
def test_limits_hold(limits: PromqlLimits, query: str, says: str) -> None:
    """Guarantees: each limit refuses one more than it allows, and says which it is."""
    with pytest.raises(TooLarge, match=says):
        evaluate_range(query, COUNTER, 0, 20 * MINUTE, MINUTE, limits)


def test_a_query_within_its_limits_is_answered() -> None:
    """Guarantees: the limits of the test above are not simply too small for any query."""
    limits = PromqlLimits(steps_max=21, series_max=2, samples_max=200)
    answer = evaluate_range("sum(requests_total)", COUNTER, 0, 20 * MINUTE, MINUTE, limits)
    assert only(answer) == [180.0 * minute for minute in range(21)]


def test_a_cancelled_query_stops() -> None:
    """Scenario: the token is cancelled while points are read. Guarantees: nothing is evaluated
    afterwards."""
    cancel = CancelToken()

    class Cancelling:
        def select(self, matchers: object, after_ms: int, until_ms: int) -> PointSet:
            cancel.cancel(Unavailable("the client left"))
            return COUNTER.select((), after_ms, until_ms)

    with pytest.raises(Unavailable, match="the client left"):
        evaluate_range("sum(rate(x[5m]))", Cancelling(), 0, MINUTE, MINUTE, cancel=cancel)


def test_gains_of_deltas_are_summed() -> None:
    """Scenario: points say how much was added since the one before. Guarantees: increase adds up
    those in the window, rate divides by it, neither extrapolates; a plain selector shows a
    running total, and says so."""
    source = source_of('added_total{job="a"} 1 2 3 4 5 stale', deltas=True)
    assert only(evaluate_instant("increase(added_total[2m])", source, 4 * MINUTE)) == [9.0]
    assert only(evaluate_instant("rate(added_total[2m])", source, 4 * MINUTE)) == [9 / 120]
    assert only(evaluate_instant("irate(added_total[2m])", source, 4 * MINUTE)) == [5 / 60]
    assert only(evaluate_instant("sum_over_time(added_total[2m])", source, 4 * MINUTE)) == [9.0]
    answer = evaluate_range("added_total", source, 0, 5 * MINUTE, MINUTE)
    assert only(answer) == [1.0, 3.0, 6.0, 10.0, 15.0]
    assert ["running total" in warning for warning in answer.warnings] == [True]
    assert not evaluate_range("increase(added_total[2m])", source, 0, MINUTE, MINUTE).warnings


def test_histograms_of_deltas_are_summed() -> None:
    """Guarantees: increase of native histograms of delta temporality adds those in the window."""
    line = "sizes {{schema:0 count:1 sum:2 buckets:[1]}}x4"
    source = source_of(line, deltas=True)
    answer = evaluate_instant("histogram_count(increase(sizes[2m]))", source, 4 * MINUTE)
    assert only(answer) == [2.0]
    assert only(evaluate_instant("histogram_sum(sizes)", source, 4 * MINUTE)) == [10.0]


def test_a_query_says_what_it_reads() -> None:
    """Guarantees: the ranges cover offsets, @ and subqueries, and nothing is evaluated twice."""
    query = (
        'rate(a{b=~"c"}[5m] offset 1m) + d @ end() + max_over_time(a[10m:1m])'
        " + label_replace(d, 'x', '', '', '')"
    )
    found = selections(query, 10 * MINUTE, 20 * MINUTE, MINUTE)
    a, d = LabelMatcher("__name__", "=", "a"), LabelMatcher("__name__", "=", "d")
    assert found == [
        ((a, LabelMatcher("b", "=~", "c")), 4 * MINUTE, 19 * MINUTE),
        ((d,), 15 * MINUTE, 20 * MINUTE),
        ((a,), -4 * MINUTE, 20 * MINUTE),
        ((d,), 5 * MINUTE, 20 * MINUTE),
    ]


@pytest.mark.parametrize(
    ("query", "place"),
    [
        ("rate(up[5m])", "1:6"),
        ('sum by (job) (rate(up{job="a", x!~"b"}[5m]))', "1:20"),
        ("1 + # one\n  sum(\n    rate(up[5m] offset -1m @ start()))", "3:10"),
        ("-(1 + 2) * on() group_left() rate({__name__='up'}[5m:1m])", "1:35"),
    ],
)
def test_notes_point_at_the_expression(query: str, place: str) -> None:
    """Guarantees: the place at the end of a note is where the expression begins in the text."""
    source = source_of('up{job="a"} 0+1x20')
    answer = evaluate_instant(query, source, 10 * MINUTE)
    assert [note.endswith(f'"up" ({place})') for note in answer.infos] == [True]


def test_points_may_be_read_only_and_out_of_order() -> None:
    """Scenario: a source over foreign buffers, whose series are not sorted by their labels.
    Guarantees: the result is, and no kernel is compiled for another kind of array."""
    from frazil.languages.promql.kernels.rates import extrapolated

    times = np.arange(0, 10 * MINUTE, MINUTE, dtype=np.int64)

    class Foreign:
        def select(self, matchers: object, after_ms: int, until_ms: int) -> PointSet:
            both, values = np.tile(times, 2), np.arange(20.0)
            both.flags.writeable = values.flags.writeable = False
            return PointSet(
                labels=[(("__name__", "x_total"), ("job", job)) for job in "ba"],
                starts=np.array([0, 10, 20], np.int64),
                times_ms=both,
                values=values,
                is_delta=np.zeros(2, np.bool_),
            )

    evaluate_range("rate(x_total[5m])", COUNTER, 0, MINUTE, MINUTE)
    compiled = len(extrapolated.signatures)  # type: ignore[attr-defined]
    answer = evaluate_range("increase(x_total[3m])", Foreign(), 9 * MINUTE, 9 * MINUTE, MINUTE)
    assert [dict(series.labels)["job"] for series in answer.all_series()] == ["a", "b"]
    assert [float(series.values[0]) for series in answer.all_series()] == [3.0, 3.0]
    assert len(extrapolated.signatures) == compiled  # type: ignore[attr-defined]


def test_the_syntax_tree_is_that_of_prometheus() -> None:
    """Guarantees: `parse_query` gets the names and values that Prometheus' own page reads."""
    query = "sum by (a) (rate(x{b!='c'}[5m] @ end())) >= bool on (d) group_left (e) -y offset 1m"
    tree = syntax_json(parse(query))
    assert (tree["type"], tree["op"], tree["bool"]) == ("binaryExpr", ">=", True)
    assert tree["matching"] == {
        "card": "many-to-one",
        "labels": ["d"],
        "on": True,
        "include": ["e"],
        "fillValues": {"lhs": None, "rhs": None},
    }
    assert tree["lhs"] == {
        "type": "aggregation",
        "op": "sum",
        "expr": {
            "type": "call",
            "func": {
                "name": "rate",
                "argTypes": ["matrix"],
                "variadic": 0,
                "returnType": "vector",
            },
            "args": [
                {
                    "type": "matrixSelector",
                    "range": 5 * MINUTE,
                    "name": "x",
                    "offset": 0,
                    "matchers": [
                        {"name": "b", "value": "c", "type": "!="},
                        {"name": "__name__", "value": "x", "type": "="},
                    ],
                    "timestamp": None,
                    "startOrEnd": "end",
                }
            ],
        },
        "param": None,
        "grouping": ["a"],
        "without": False,
    }
    assert tree["rhs"]["type"] == "unaryExpr"
    assert tree["rhs"]["expr"]["offset"] == MINUTE


def test_a_query_is_formatted() -> None:
    """Guarantees: a query comes back as Prometheus' formatter writes it, and one that it cannot
    write is refused."""
    assert prettified("sum( x )by(a)") == "sum by (a) (x)"
    with pytest.raises(UnsupportedQuery, match="not formatted"):
        prettified("x </ 5")
    with pytest.raises(Malformed, match="unclosed"):
        prettified("sum(")


def test_a_series_with_its_name_stays_apart() -> None:
    """Scenario: both sides of `or` come from one metric, and only one keeps its name. Guarantees:
    each point is in the series of its side, as without delayed name removal."""
    source = source_of("temperature 1 9 2 8")
    answer = evaluate_range("(temperature > 5) or 2 * temperature", source, 0, 3 * MINUTE, MINUTE)
    found = {
        series.labels: dict(zip(series.times_ms // MINUTE, series.values, strict=True))
        for series in answer.all_series()
    }
    assert found == {(): {0: 2.0, 2: 4.0}, (("__name__", "temperature"),): {1: 9.0, 3: 8.0}}
