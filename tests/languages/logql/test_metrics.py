# ruff: noqa: E501 # a case is a line
"""Queries of numbers give what plain Python computes from the same records."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from frazil.errors import Malformed
from frazil.languages import (
    LogScalar,
    LogSelection,
    LogSteps,
    ReadRows,
    evaluate_logql,
    parse_logql,
)
from tests.languages.logql.rows import BEGIN_NS, RECORDS, SECOND_NS, Known, reading

STARTS = (15, 25, 35, 45, 55)
"""Seconds of the steps."""
GRID = LogSteps(BEGIN_NS + 15 * SECOND_NS, BEGIN_NS + 55 * SECOND_NS, 10 * SECOND_NS)

Key = tuple[tuple[str, str], ...]
Values = dict[Key, float]
Window = Sequence[Known]
Expected = Callable[[Window], Values]


@pytest.fixture(scope="module")
def read() -> Iterator[ReadRows]:
    with reading() as opened:
        yield opened


def window(at: int, width: float, offset: int = 0) -> Window:
    """What is in (t - width, t]."""
    end = at - offset
    return [k for k in RECORDS if end - width < k.n <= end]


def evaluated(read: ReadRows, query: str, grid: LogSteps) -> list[Values]:
    """Values by labels, step by step."""
    expression = parse_logql(query)
    assert not isinstance(expression, LogSelection)
    value = evaluate_logql(read, expression, grid)
    if isinstance(value, LogScalar):
        return [{(): value.value}] * grid.count
    assert len({series.labels for series in value}) == len(value)
    return [
        {series.labels: float(series.values[i]) for series in value if series.is_present[i]}
        for i in range(grid.count)
    ]


def same(got: list[Values], wanted: list[Values]) -> None:
    assert [set(step) for step in got] == [set(step) for step in wanted]
    for one, other in zip(got, wanted, strict=True):
        for key, value in other.items():
            assert one[key] == pytest.approx(value, nan_ok=True, rel=1e-9), key


def by(rows: Window, *names: str, value: Callable[[Window], float] = len) -> Values:
    """Group records by what they are known to have, and reduce each group."""
    labels = {"service_name": "service", "detected_level": "level", "level": "level",
              "http_route": "route", "cloud_region": "region", "k8s_pod_name": "pod",
              "status": "status", "user_name": "user"}  # fmt: skip
    groups: dict[Key, list[Known]] = {}
    for row in rows:
        key = tuple(sorted((name, str(getattr(row, labels[name]))) for name in names))
        groups.setdefault(key, []).append(row)
    return {key: value(group) for key, group in groups.items()}


def of(service: str, rows: Window) -> list[Known]:
    return [k for k in rows if k.service == service]


def scaled(values: Values, factor: float) -> Values:
    return {key: value * factor for key, value in values.items()}


def bytes_of(rows: Window) -> float:
    return float(sum(len(k.line.encode()) for k in rows))


def ms(reduce: Callable[[list[float]], float]) -> Callable[[Window], float]:
    return lambda rows: float(reduce([float(k.ms) for k in rows]))


CART_MS = '{service_name="cart"} | json | unwrap ms'

WINDOWED: list[tuple[str, float, Expected]] = [
    # Counted by SQL
    ("sum(count_over_time({}[10s]))", 10, lambda w: by(w)),
    ("sum by (service_name) (count_over_time({}[10s]))", 10, lambda w: by(w, "service_name")),
    ("sum by (service_name) (count_over_time({}[7s]))", 7, lambda w: by(w, "service_name")),
    ("sum by (service_name) (count_over_time({}[25s]))", 25, lambda w: by(w, "service_name")),
    ("sum(count_over_time({}[10s])) by (service_name, detected_level)", 10, lambda w: by(w, "service_name", "detected_level")),
    ("sum by (level, detected_level) (count_over_time({} | drop __error__[10s]))", 10, lambda w: by(w, "detected_level")),
    ("sum by (level) (count_over_time({}[10s]))", 10, lambda w: by(w, "level")),
    ("sum by (http_route) (count_over_time({}[10s]))", 10, lambda w: by(w, "http_route")),
    ("sum by (cloud_region) (rate({}[20s]))", 20, lambda w: scaled(by(w, "cloud_region"), 1 / 20)),
    ("sum by (missing) (count_over_time({}[10s]))", 10, lambda w: by(w)),
    ('sum(rate({} |= "plain" [20s]))', 20, lambda w: scaled(by([k for k in w if "plain" in k.line]), 1 / 20)),
    ('sum(count_over_time({level="error"}[30s]))', 30, lambda w: by([k for k in w if k.level == "error"])),
    ("sum by (service_name) (bytes_over_time({}[10s]))", 10, lambda w: by(w, "service_name", value=bytes_of)),
    ("sum(bytes_rate({}[10s]))", 10, lambda w: scaled(by(w, value=bytes_of), 0.1)),
    ('sum by (k8s_pod_name) (rate({} | http_route="/r1" [30s]))', 30, lambda w: scaled(by([k for k in w if k.route == "/r1"], "k8s_pod_name"), 1 / 30)),
    ('sum(count_over_time({service_name="nobody"}[10s]))', 10, lambda w: {}),
    ('sum(count_over_time({} != "plain" or "GET" [10s]))', 10, lambda w: by([k for k in w if k.service == "cart" or k.n == 59])),
    ("sum by (service_name) (count_over_time({}[10500ms]))", 10.5, lambda w: by(w, "service_name")),
    # From lines
    ('sum by (status) (count_over_time({service_name="cart"} | json [20s]))', 20, lambda w: by(of("cart", w), "status")),
    ('sum by (status, user_name) (rate({service_name="cart"} | json [20s]))', 20, lambda w: scaled(by(of("cart", w), "status", "user_name"), 0.05)),
    ('sum by (status) (count_over_time({service_name="cart"} | json | status >= 300 [20s]))', 20, lambda w: by([k for k in of("cart", w) if k.status >= 300], "status")),
    ('sum by (status) (count_over_time({} | json | __error__="" | status!="" [20s]))', 20, lambda w: by(of("cart", w), "status")),
    ('sum(count_over_time({service_name="cart"} | json | logfmt [20s]))', 20, lambda w: by(of("cart", w))),
    ("sum(count_over_time({} | json | drop __error__ [20s]))", 20, lambda w: by(w)),
    ('sum by (status) (bytes_over_time({service_name="cart"} | json [20s]))', 20, lambda w: by(of("cart", w), "status", value=bytes_of)),
    ('sum(bytes_over_time({} | line_format "{{.http_route}}" [10s]))', 10, lambda w: by(w, value=lambda r: 3.0 * len(r))),
    ('sum by (route) (count_over_time({} | label_format route=http_route [10s]))', 10, lambda w: {(("route", k[0][1]),): v for k, v in by(w, "http_route").items()}),
    ('sum by (service_name) (count_over_time({} |= ip("10.0.1.0/24") [30s]))', 30, lambda w: by([k for k in of("gate", w) if k.n % 3 == 1], "service_name")),
    ('sum by (status) (count_over_time({service_name="gate"} | pattern "<_> - <_> <_> <status> <_>" [20s]))', 20, lambda w: by(of("gate", w), "status")),
    # Unwrapped
    (f"sum(sum_over_time({CART_MS} [20s]))", 20, lambda w: by(of("cart", w), value=ms(sum))),
    (f"sum_over_time({CART_MS} | __error__=`` [20s]) > 1e9", 20, lambda w: {}),
    (f"avg_over_time({CART_MS} [20s]) by (service_name)", 20, lambda w: by(of("cart", w), "service_name", value=ms(statistics.fmean))),
    (f"min_over_time({CART_MS} [20s]) by (service_name)", 20, lambda w: by(of("cart", w), "service_name", value=ms(min))),
    (f"max_over_time({CART_MS} [20s]) by (status)", 20, lambda w: by(of("cart", w), "status", value=ms(max))),
    (f"first_over_time({CART_MS} [20s]) by (status)", 20, lambda w: by(of("cart", w), "status", value=ms(lambda v: v[0]))),
    (f"last_over_time({CART_MS} [20s]) by (status)", 20, lambda w: by(of("cart", w), "status", value=ms(lambda v: v[-1]))),
    (f"stddev_over_time({CART_MS} [20s]) by (service_name)", 20, lambda w: by(of("cart", w), "service_name", value=ms(statistics.pstdev))),
    (f"stdvar_over_time({CART_MS} [20s]) by (service_name)", 20, lambda w: by(of("cart", w), "service_name", value=ms(statistics.pvariance))),
    (f"quantile_over_time(0.9, {CART_MS} [40s]) by (service_name)", 40, lambda w: by(of("cart", w), "service_name", value=ms(lambda v: float(np.percentile(v, 90))))),
    (f"quantile_over_time(0.5, {CART_MS} [40s]) by (status)", 40, lambda w: by(of("cart", w), "status", value=ms(statistics.median))),
    (f"sum(rate({CART_MS} [20s]))", 20, lambda w: scaled(by(of("cart", w), value=ms(sum)), 1 / 20)),
    (f"max(max_over_time({CART_MS} [20s]))", 20, lambda w: by(of("cart", w), value=ms(max))),
    (f"min by (status) (min_over_time({CART_MS} [20s]))", 20, lambda w: by(of("cart", w), "status", value=ms(min))),
    ('sum(sum_over_time({service_name="web"} | logfmt | unwrap duration(dur) [20s]))', 20, lambda w: by(of("web", w), value=lambda r: sum(k.n for k in r) / 1000)),
    ('sum(sum_over_time({service_name="web"} | logfmt | unwrap duration_seconds(dur) [20s]))', 20, lambda w: by(of("web", w), value=lambda r: sum(k.n for k in r) / 1000)),
    ('sum(sum_over_time({service_name="web"} | logfmt | unwrap bytes(size) [20s]))', 20, lambda w: by(of("web", w), value=lambda r: sum(k.n for k in r) * 1000.0)),
    ("sum by (service_name) (sum_over_time({} | unwrap retry_count [10s]))", 10, lambda w: by(w, "service_name", value=lambda r: float(sum(k.retries for k in r)))),
    ('sum(sum_over_time({service_name="web"} | logfmt | unwrap at | __error__="" [10s]))', 10, lambda w: {}),
    ("sum(sum_over_time({} | unwrap nothing [10s]))", 10, lambda w: {}),
    # Above them
    ("avg(sum by (service_name) (count_over_time({}[10s])))", 10, lambda w: {(): statistics.fmean(by(w, "service_name").values())}),
    ("min(sum by (service_name) (count_over_time({}[10s])))", 10, lambda w: {(): min(by(w, "service_name").values())}),
    ("max(sum by (service_name) (count_over_time({}[10s])))", 10, lambda w: {(): max(by(w, "service_name").values())}),
    ("count(sum by (service_name) (count_over_time({}[10s])))", 10, lambda w: {(): len(by(w, "service_name"))}),
    ("count(count_over_time({}[10s]))", 10, lambda w: {(): len(w)}),
    ("stddev(sum by (service_name) (bytes_over_time({}[10s])))", 10, lambda w: {(): statistics.pstdev(by(w, "service_name", value=bytes_of).values())}),
    ("stdvar(sum by (service_name) (bytes_over_time({}[10s])))", 10, lambda w: {(): statistics.pvariance(by(w, "service_name", value=bytes_of).values())}),
    ("topk(1, sum by (service_name) (bytes_over_time({}[10s])))", 10, lambda w: largest(by(w, "service_name", value=bytes_of), 1)),
    ("topk(2, sum by (service_name) (bytes_over_time({}[10s])))", 10, lambda w: largest(by(w, "service_name", value=bytes_of), 2)),
    ("bottomk(2, sum by (service_name) (bytes_over_time({}[10s])))", 10, lambda w: scaled(largest(scaled(by(w, "service_name", value=bytes_of), -1), 2), -1)),
    ("sum without (service_name) (sum by (service_name, http_route) (count_over_time({}[10s])))", 10, lambda w: by(w, "http_route")),
    ("sum without (service_name, k8s_pod_name, build, cloud_region, detected_level, retry_count, severity_number, severity_text, trace_id) (count_over_time({}[10s]))", 10, lambda w: by(w, "http_route")),
    ("max by (http_route) (sum by (service_name, http_route) (count_over_time({}[20s])))", 20, lambda w: highest(by(w, "service_name", "http_route"), "http_route")),
    ("sort_desc(sum by (service_name) (count_over_time({}[10s])))", 10, lambda w: by(w, "service_name")),
    ("sum(count_over_time({}[10s])) * 2 + 1", 10, lambda w: scaled({(): len(w) + 0.5}, 2)),
    ("2 ^ 3 ^ 2 + 0 * sum(count_over_time({}[10s]))", 10, lambda w: {(): 512}),
    ("10 - sum(count_over_time({}[10s])) % 4", 10, lambda w: {(): 10 - len(w) % 4}),
    ("sum(count_over_time({}[10s])) / 0", 10, lambda w: {(): math.inf}),
    ("sum by (service_name) (count_over_time({}[10s])) > 2", 10, lambda w: {k: v for k, v in by(w, "service_name").items() if v > 2}),
    ("sum by (service_name) (count_over_time({}[10s])) > bool 2", 10, lambda w: {k: float(v > 2) for k, v in by(w, "service_name").items()}),
    ("2 < sum by (service_name) (count_over_time({}[10s]))", 10, lambda w: {k: v for k, v in by(w, "service_name").items() if v > 2}),
    ("sum by (service_name) (rate({}[10s])) / on (service_name) sum by (service_name) (count_over_time({}[10s]))", 10, lambda w: dict.fromkeys(by(w, "service_name"), 0.1)),
    ("sum by (service_name) (count_over_time({}[10s])) / ignoring (service_name) group_left sum(count_over_time({}[10s]))", 10, lambda w: scaled(by(w, "service_name"), 1 / len(w))),
    ("sum by (service_name, http_route) (count_over_time({}[20s])) / on (service_name) group_left () sum by (service_name) (count_over_time({}[20s]))", 20, lambda w: {k: v / by(w, "service_name")[k[1:]] for k, v in by(w, "service_name", "http_route").items()}),
    ("sum by (service_name) (count_over_time({}[20s])) * on (service_name) group_right sum by (service_name, http_route) (count_over_time({}[20s]))", 20, lambda w: {k: v * by(w, "service_name")[k[1:]] for k, v in by(w, "service_name", "http_route").items()}),
    ('sum by (service_name) (count_over_time({}[10s])) and sum by (service_name) (count_over_time({service_name=~"cart|web"}[10s]))', 10, lambda w: by([k for k in w if k.service in ("cart", "web")], "service_name")),
    ('sum by (service_name) (count_over_time({}[10s])) unless sum by (service_name) (count_over_time({service_name=~"cart|web"}[10s]))', 10, lambda w: by([k for k in w if k.service not in ("cart", "web")], "service_name")),
    ('sum by (service_name) (count_over_time({service_name="cart"}[10s])) or sum by (service_name) (count_over_time({service_name="web"}[10s]))', 10, lambda w: by([k for k in w if k.service in ("cart", "web")], "service_name")),
    ("sum(count_over_time({service_name=`nobody`}[10s])) or vector(0)", 10, lambda w: {(): 0}),
    ('label_replace(sum by (service_name) (count_over_time({}[10s])), "svc", "$1!", "service_name", "(.).*")', 10, lambda w: {(*k, ("svc", f"{k[0][1][0]}!")): v for k, v in by(w, "service_name").items()}),
    ('label_replace(sum by (service_name) (count_over_time({}[10s])), "svc", "x", "service_name", "nothing")', 10, lambda w: by(w, "service_name")),
    # Constants
    ("vector(1)+vector(1)", 1, lambda w: {(): 2}),
    ("vector(3) > 2", 1, lambda w: {(): 3}),
    ("vector(1) > 2", 1, lambda w: {}),
    ("1 + 2 * 3 - 4 / 2", 1, lambda w: {(): 5}),
    ("(1 + 2) * 3", 1, lambda w: {(): 9}),
    ("-1 + 5", 1, lambda w: {(): 4}),
    ("1 > bool 2", 1, lambda w: {(): 0}),
    ('absent_over_time({service_name="nobody", x="y", z=~".+"}[10s])', 10, lambda w: {(("service_name", "nobody"), ("x", "y")): 1}),
    ('absent_over_time({service_name="cart"}[10s])', 10, lambda w: {}),
    ('absent_over_time({service_name="gate"}[2s])', 2, lambda w: {} if of("gate", w) else {(("service_name", "gate"),): 1}),
]  # fmt: skip


def largest(values: Values, count: int) -> Values:
    ranked = sorted(values.items(), key=lambda pair: (-pair[1], pair[0]))
    return dict(ranked[:count])


def highest(values: Values, name: str) -> Values:
    found: Values = {}
    for key, value in values.items():
        kept = tuple(pair for pair in key if pair[0] == name)
        found[kept] = max(value, found.get(kept, -math.inf))
    return found


@pytest.mark.parametrize(
    ("query", "width", "expected"), WINDOWED, ids=[query for query, _, _ in WINDOWED]
)
def test_steps(read: ReadRows, query: str, width: float, expected: Expected) -> None:
    """Each step has the records of (t - range, t]."""
    same(evaluated(read, query, GRID), [expected(window(at, width)) for at in STARTS])


def test_an_offset_looks_back(read: ReadRows) -> None:
    """Windows end before their steps, or after them if the offset is negative."""
    for offset in (5, 12, -5):
        query = f"sum by (service_name) (count_over_time({{}}[10s] offset {offset}s))"
        wanted = [by(window(at, 10, offset), "service_name") for at in STARTS]
        same(evaluated(read, query.replace("offset -", "offset - "), GRID), wanted)
        unwrapped = f"sum(sum_over_time({CART_MS} [10s] offset {offset}s))"
        wanted = [by(of("cart", window(at, 10, offset)), value=ms(sum)) for at in STARTS]
        same(evaluated(read, unwrapped, GRID), wanted)


def test_one_time(read: ReadRows) -> None:
    """An instant is a grid of one step."""
    at = LogSteps(BEGIN_NS + 40 * SECOND_NS, BEGIN_NS + 40 * SECOND_NS, 0)
    query = "sum by (service_name) (count_over_time({}[15s]))"
    same(evaluated(read, query, at), [by(window(40, 15), "service_name")])
    order = evaluate_order(read, "sort_desc(sum by (service_name) (bytes_over_time({}[15s])))", at)
    sizes = by(window(40, 15), "service_name", value=bytes_of)
    assert order == sorted(sizes, key=lambda key: -sizes[key])


def evaluate_order(read: ReadRows, query: str, grid: LogSteps) -> list[Key]:
    expression = parse_logql(query)
    assert not isinstance(expression, LogSelection)
    value: Any = evaluate_logql(read, expression, grid)
    return [series.labels for series in value]


def test_many_parts_of_time_are_read_as_lines(
    read: ReadRows, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQL counts and lines give the same."""
    query = "sum by (service_name, level) (rate({} |= `GET` [9s]))"
    counted = evaluated(read, query, GRID)
    monkeypatch.setattr("frazil.languages.logql.samples.PARTS_MAX", 1)
    same(evaluated(read, query, GRID), counted)
    assert any(counted)


def test_rate_counter_follows_resets(read: ReadRows) -> None:
    """Retries of one route grow by 3 modulo 7: the windows of 9 s have resets."""
    query = (
        "rate_counter({http_route=`/r1`} | keep http_route, retry_count | unwrap retry_count [31s])"
    )
    got = evaluated(read, query, LogSteps(GRID.end_ns, GRID.end_ns, 0))
    rows = [k for k in window(55, 31) if k.route == "/r1"]
    values = [k.retries for k in rows]
    grown = sum(b - a if b >= a else b for a, b in pairwise(values))
    sampled, mean = rows[-1].n - rows[0].n, 3.0
    begin, end = float(rows[0].n - (55 - 31)), 55.0 - rows[-1].n
    begin = min(begin, sampled * values[0] / grown)
    extended = sampled + sum(gap if gap < mean * 1.1 else mean / 2 for gap in (begin, end))
    same(got, [{(("http_route", "/r1"),): grown * extended / sampled / 31}])


REFUSED = [
    ("sum by (user_name) (rate({} | json [10s]))", "pipeline error: 'JSONParserErr'"),
    ("sum(sum_over_time({service_name=`web`} | logfmt | unwrap at [10s]))", "SampleExtractionErr"),
    ("sum by (service_name) (rate({}[10s])) / sum by (service_name, http_route) (rate({}[10s]))", ""),
    ("sum by (service_name, http_route) (rate({}[60s])) / on (service_name) sum by (service_name) (rate({}[60s]))", "group_left"),
]  # fmt: skip


@pytest.mark.parametrize(("query", "message"), REFUSED, ids=[query for query, _ in REFUSED])
def test_what_cannot_be_answered_says_why(read: ReadRows, query: str, message: str) -> None:
    """Errors of lines and ambiguous matches end a query; series that do not match are none."""
    if not message:
        assert evaluated(read, query, GRID) == [{}] * GRID.count
        return
    with pytest.raises(Malformed, match=message):
        evaluated(read, query, GRID)
