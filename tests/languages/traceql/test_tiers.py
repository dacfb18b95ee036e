"""The same answers from the hot tier, from the lake, and across the seam between them."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from frazil.languages.traceql.compare import compare_spans
from frazil.languages.traceql.metrics import span_metrics
from frazil.languages.traceql.nodes import CompareStage, MetricsStage
from frazil.languages.traceql.parser import parse_traceql
from frazil.languages.traceql.search import find_by_traceql, spans_of_traces
from frazil.languages.traceql.series import step_range
from frazil.languages.traceql.tags import tag_names, tag_of, tag_values
from frazil.query.search.filters import ALWAYS, EPOCH, Ask
from tests.demo.records import NS_PER_S, START_NS, traffic
from tests.query.both_tiers import World, both_tiers

SECONDS = 8
SPANS_PER_REQUEST = 20
BEGIN = EPOCH + datetime.timedelta(seconds=START_NS // NS_PER_S)
STEPS = step_range(BEGIN, BEGIN + datetime.timedelta(minutes=1), datetime.timedelta(seconds=5))
ALL = 1000
SEARCHES = (
    "{ }",
    '{ resource.service.name = "cart" && span.db.system != nil }',
    "{ event:name != nil || link:traceID != nil }",
    '{ event.exception.type =~ ".+" }',
    "{ kind = server } >> { kind = client } | count() > 1 | select(nestedSetLeft, .http.route)",
    '{ rootServiceName = "storefront" && span:childCount > 1 && traceDuration > 1ms }',
    "{ span.http.response.status_code >= 400 } | by(resource.service.name)",
)
METRICS = (
    "{ } | rate() by(resource.service.name)",
    "{ kind = server } | quantile_over_time(duration, .5, .9) by(name)",
    "{ } >> { kind = client } | histogram_over_time(duration)",
    "{ event:name != nil } | count_over_time() by(event:name)",
)


def answers(ask: Ask) -> dict[str, Any]:
    """What all queries give."""
    found: dict[str, Any] = {}
    for query in SEARCHES:
        pipeline = parse_traceql(query).pipeline
        found[query] = find_by_traceql(
            ask, pipeline, within=ALWAYS, limit=ALL, spans_per_spanset=ALL
        )
    for query in METRICS:
        parsed = parse_traceql(query)
        assert isinstance(parsed.metrics, MetricsStage)
        found[query] = span_metrics(ask, parsed, parsed.metrics, STEPS)
    parsed = parse_traceql("{ } | compare({ status = error }, 3)")
    assert isinstance(parsed.metrics, CompareStage)
    found["compare"] = compare_spans(ask, parsed, parsed.metrics, STEPS)
    for scope in ("span", "resource", "event", "link"):
        found[scope] = tag_names(ask, scope, within=ALWAYS, limit=ALL)
    for tag in ("span.http.response.status_code", ".http.route", "event:name"):
        found[tag] = tag_values(ask, tag_of(tag), None, within=ALWAYS, limit=ALL)
    ids = [trace.summary.trace_id for trace in found["{ }"]][:3]
    found["spans"] = spans_of_traces(ask, ids)
    return found


def ask_of(world: World) -> Ask:
    def ask(text: str) -> pa.Table:
        with world.engine.sql(text) as result:
            return result.arrow()

    return ask


def small_requests() -> Iterator[bytes]:
    """The spans of the shop, a few at a time: most traces are in several requests."""
    shop = traffic(7, 4)
    for export in [*shop.advance(START_NS + SECONDS * NS_PER_S), *shop.end()]:
        if export.signal != "traces":
            continue
        for resource in ExportTraceServiceRequest.FromString(export.body).resource_spans:
            for scope in resource.scope_spans:
                spans = list(scope.spans)
                for begin in range(0, len(spans), SPANS_PER_REQUEST):
                    del scope.spans[:]
                    scope.spans.extend(spans[begin : begin + SPANS_PER_REQUEST])
                    yield ExportTraceServiceRequest(resource_spans=[resource]).SerializeToString()


def test_the_same_answers_from_every_tier(tmp_path: Path) -> None:
    with both_tiers(tmp_path / "data") as world:
        ask = ask_of(world)
        requests = list(small_requests())
        half = len(requests) // 2
        for number, body in enumerate(requests):
            if number == half:
                world.appender.append()
            world.put("otlp_spans", body)
        world.show()
        hot = answers(ask)  # the view does not know yet what the lake has
        assert all(hot.values()), [name for name, answer in hot.items() if not answer]
        world.view.refresh()
        assert 0 < world.view.held("spans", "otlp_spans", 0) < len(requests)
        assert answers(ask) == hot
        world.flush()
        assert answers(ask) == hot
