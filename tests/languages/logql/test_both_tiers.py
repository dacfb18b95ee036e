"""The same answers from the hot tier, from the lake, and across both."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from frazil.languages import (
    LineSpan,
    LogScalar,
    LogSelection,
    LogSteps,
    evaluate_logql,
    find_lines,
    label_values,
    parse_logql,
    parse_selection,
    stream_labels,
    stream_totals,
)
from tests.conformance.cases import NOW_NS
from tests.query.both_tiers import World, both_tiers

SPAN = LineSpan(NOW_NS - 10**9, NOW_NS + 10**9)
GRID = LogSteps(NOW_NS + 10**9, NOW_NS + 10**9, 0)
LINES = (
    '{host_name="a"} | http_route="/x"',
    '{cloud_region=~"e.", service_name="cart"}',
    '{} |~ "^$" | retry_count > 0',
    '{} | json | drop __error__ | cloud_region="eu"',
)
NUMBERS = (
    "sum by (http_route, cloud_region) (count_over_time({}[1m]))",
    "sum by (retry_count) (rate({http_route=~`/.*`}[1m]))",
    "sum by (host_name) (sum_over_time({} | unwrap retry_count [1m]))",
)


def answers(world: World) -> list[Any]:
    """What every kind of query answers, in an order of its own."""

    def read(sql: str) -> Any:
        return world.engine.sql(sql)

    found: list[Any] = []
    for query in LINES:
        lines = find_lines(read, parse_selection(query), SPAN, limit=100, is_newest=True).lines
        found.append(
            sorted((line.time_ns, line.line, sorted(line.labels().items())) for line in lines)
        )
    for query in NUMBERS:
        expression = parse_logql(query)
        assert not isinstance(expression, LogSelection)
        value = evaluate_logql(read, expression, GRID)
        assert not isinstance(value, LogScalar)
        found.append(sorted((series.labels, series.values.tolist()) for series in value))
    found.append(stream_labels(read, SPAN))
    found.append(label_values(read, "http_route", SPAN))
    found.append(sorted((one.labels, one.line_count) for one in stream_totals(read, SPAN)))
    return found


def add(world: World, number: int) -> None:
    resource = {
        "resource:service.name": "cart" if number % 2 else "web",
        "resource:host.name": "ab"[number % 2],
        "resource:cloud.region": "eu" if number < 4 else "us",
    }
    first = {**resource, "http.route": "/x", "retry.count": number}
    world.add_logs(first, {"http.route": "/y", "retry_count": number + 1}, {"other.key": "z"})


def test_tiers_answer_alike(tmp_path: Path) -> None:
    with both_tiers(tmp_path / "hot") as hot, both_tiers(tmp_path / "seam") as seam:
        for number in range(6):
            add(hot, number)
            add(seam, number)
            if number == 3:
                seam.show()
                seam.seal()
                seam.flush()
        hot.show()
        seam.show()
        wanted = answers(hot)
        assert all(wanted), "each query finds something"
        assert answers(seam) == wanted
        seam.flush()
        assert answers(seam) == wanted
