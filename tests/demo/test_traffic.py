"""The three signals of the shop agree with each other."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any

import pytest

from frazil.demo.incidents import CYCLE_S
from tests.demo.records import NS_PER_S, START_NS, Sent, SentRow, sent_in, traffic

SERVER, CLIENT, PRODUCER, CONSUMER = 2, 3, 4, 5
ERROR_STATUS = 2
DELTA = 1


@pytest.fixture(scope="module")
def sent() -> Sent:
    """One whole cycle of incidents."""
    return sent_in(CYCLE_S)


def test_the_same_seed_gives_the_same_bytes() -> None:
    until_ns = START_NS + 20 * NS_PER_S
    bodies = []
    for seed in (1, 1, 2):
        shop = traffic(seed, 10)
        exports = [*shop.advance(until_ns), *shop.end()]
        bodies.append([(export.signal, export.body) for export in exports])
    assert bodies[0] == bodies[1]
    assert bodies[0] != bodies[2]


def test_the_step_of_advance_does_not_matter() -> None:
    at_once, in_steps = traffic(3, 10), traffic(3, 10)
    until_ns = START_NS + 15 * NS_PER_S
    first = [*at_once.advance(until_ns), *at_once.end()]
    second = [e for s in range(16) for e in in_steps.advance(START_NS + s * NS_PER_S)]
    second += in_steps.end()
    assert [e.body for e in first] == [e.body for e in second]


def test_every_parent_span_exists(sent: Sent) -> None:
    """In the same trace. Each trace has one root, and ids are unique."""
    span_ids = {(row.record.trace_id, row.record.span_id) for row in sent.spans}
    assert len(span_ids) == len(sent.spans)
    roots: Counter[bytes] = Counter()
    for row in sent.spans:
        span = row.record
        if span.parent_span_id:
            assert (span.trace_id, span.parent_span_id) in span_ids
        else:
            roots[span.trace_id] += 1
        assert span.start_time_unix_nano <= span.end_time_unix_nano
    assert set(roots.values()) == {1}
    assert roots.keys() == {trace_id for trace_id, _ in span_ids}


def test_server_spans_are_children_of_client_spans(sent: Sent) -> None:
    """Of another service. Roots are of storefront and mailer."""
    by_id = {row.record.span_id: row for row in sent.spans}
    for row in sent.spans:
        span = row.record
        if not span.parent_span_id:
            assert (row.service, span.kind) in {("storefront", SERVER), ("mailer", CONSUMER)}
        elif span.kind == SERVER:
            parent = by_id[span.parent_span_id]
            assert parent.record.kind == CLIENT
            assert parent.service != row.service
            assert parent.record.start_time_unix_nano <= span.start_time_unix_nano
        else:
            assert by_id[span.parent_span_id].resource == row.resource


def test_mails_are_linked_to_orders(sent: Sent) -> None:
    """A consumer has its own trace, linked to its message."""
    producers = {
        (row.record.trace_id, row.record.span_id)
        for row in sent.spans
        if row.record.kind == PRODUCER
    }
    consumers = [row.record for row in sent.spans if row.record.kind == CONSUMER]
    links = [(link.trace_id, link.span_id) for span in consumers for link in span.links]
    assert len(links) == len(consumers) == len(set(links)) > 100
    assert set(links) <= producers


def test_logs_and_exemplars_point_to_spans(sent: Sent) -> None:
    """Of the same pod."""
    span_ids = {
        (row.record.trace_id, row.record.span_id): row.resource["service.instance.id"]
        for row in sent.spans
    }
    in_spans = [row for row in sent.logs if row.record.trace_id]
    assert 0 < len(sent.logs) - len(in_spans) < len(in_spans)
    for row in in_spans:
        span_id = row.record.trace_id, row.record.span_id
        assert span_ids[span_id] == row.resource["service.instance.id"]
    exemplars = [
        exemplar
        for row in sent.points
        if hasattr(row.record, "exemplars")
        for exemplar in row.record.exemplars
    ]
    assert len(exemplars) > 1000
    assert all((each.trace_id, each.span_id) in span_ids for each in exemplars)


def newest(points: list[SentRow], name: str) -> dict[Any, Any]:
    """Return the last point of each series of a metric."""
    found: dict[Any, Any] = {}
    for row in points:
        if row.metric.name == name:
            pod = row.resource["service.instance.id"]
            found[pod, tuple(sorted(row.attributes.items()))] = row.record
    return found


def by_labels(points: list[SentRow], name: str) -> Counter[Any]:
    """Return the counts of all pods, by labels."""
    found: Counter[Any] = Counter()
    for (_, labels), point in newest(points, name).items():
        found[labels] += point.count
    return found


@pytest.mark.parametrize(
    ("name", "marker", "kind", "labels"),
    [
        (
            "http.server.request.duration",
            "http.route",
            SERVER,
            ("http.request.method", "http.response.status_code", "http.route", "url.scheme"),
        ),
        (
            "rpc.server.call.duration",
            "rpc.method",
            SERVER,
            ("rpc.grpc.status_code", "rpc.method", "rpc.service", "rpc.system"),
        ),
        (
            "db.client.operation.duration",
            "db.system.name",
            CLIENT,
            ("db.collection.name", "db.operation.name", "db.system.name"),
        ),
    ],
)
def test_histograms_count_spans(
    sent: Sent, name: str, marker: str, kind: int, labels: tuple[str, ...]
) -> None:
    """For each route, method or query, and each status."""
    expected = Counter(
        tuple((label, row.attributes[label]) for label in labels)
        for row in sent.spans
        if row.record.kind == kind and marker in row.attributes
    )
    assert by_labels(sent.points, name) == expected
    for point in newest(sent.points, name).values():
        if hasattr(point, "bucket_counts"):
            assert sum(point.bucket_counts) == point.count
        else:
            assert sum(point.positive.bucket_counts) + point.zero_count == point.count


def test_sums_of_orders_revenue_and_mails_count_spans(sent: Sent) -> None:
    orders = [row.attributes for row in sent.spans if "shop.order.id" in row.attributes]
    counted = sum(point.as_int for point in newest(sent.points, "shop.orders").values())
    assert counted == len(orders) > 100
    revenue = sum(point.as_double for point in newest(sent.points, "shop.revenue").values())
    assert revenue == pytest.approx(sum(facts["shop.order.total"] for facts in orders))
    mails = [row for row in sent.points if row.metric.name == "shop.mails.sent"]
    assert {row.metric.sum.aggregation_temporality for row in mails} == {DELTA}
    consumers = [row for row in sent.spans if row.record.kind == CONSUMER]
    assert sum(row.record.as_int for row in mails) == len(consumers)
    ends = [row.record.time_unix_nano for row in mails]
    assert [row.record.start_time_unix_nano for row in mails][1:] == ends[:-1]
    queue = [row.record.as_int for row in sent.points if "queue" in row.metric.name]
    assert min(queue) >= 0
    assert max(queue) > 3, "the mail server was down"


def test_all_kinds_of_metrics_spans_severities_and_bodies_occur(sent: Sent) -> None:
    assert len({row.service for row in sent.spans}) == 9
    assert {row.metric.WhichOneof("data") for row in sent.points} == {
        "histogram",
        "exponential_histogram",
        "sum",
        "gauge",
        "summary",
    }
    assert {row.record.kind for row in sent.spans} == {1, 2, 3, 4, 5}
    shares = Counter(row.record.severity_text for row in sent.logs)
    assert shares["FATAL"] == 1
    assert shares["ERROR"] < shares["WARN"] < shares["TRACE"] < shares["DEBUG"]
    assert shares["ERROR"] > 10
    bodies = {row.record.body.WhichOneof("value") for row in sent.logs}
    assert bodies == {"string_value", "kvlist_value"}
    assert any("\n" in row.record.body.string_value for row in sent.logs)
    traces = [
        event
        for row in sent.spans
        for event in row.record.events
        if event.name == "exception" and "exception.stacktrace" in {a.key for a in event.attributes}
    ]
    assert traces


def test_incidents_are_visible(sent: Sent) -> None:
    """Orders fail while the payment provider is slow, and each deploy is a new version."""
    failed: dict[bool, list[bool]] = defaultdict(list)
    for row in sent.spans:
        if row.service == "storefront" and row.record.name == "POST /checkout":
            story_s = (row.record.start_time_unix_nano - START_NS) / NS_PER_S
            is_error = row.record.status.code == ERROR_STATUS
            failed[300 <= story_s < 390].append(is_error)
    share_in, share_out = (sum(failed[when]) / len(failed[when]) for when in (True, False))
    assert share_in > 0.2 > 0.1 > share_out
    versions = defaultdict(set)
    for row in sent.spans:
        versions[row.service].add(row.resource["service.version"])
    assert versions["checkout"] == {"1.7.4", "1.8.0", "1.8.1"}
    assert len(versions["catalogue"]) == 2


def test_visits_stop_at_the_maximum(sent: Sent) -> None:
    """The spans of the last visit are still sent."""
    shop = traffic(5, 50)
    exports = list(shop.advance(START_NS + 10 * NS_PER_S, visits_max=40))
    assert shop.visit_count == 40
    assert not shop.has_open_visits()
    assert sum(export.record_count for export in [*exports, *shop.end()]) > 40
    roots = [t for t in sent.spans if t.service == "storefront" and not t.record.parent_span_id]
    assert 0 <= sent.visit_count - len(roots) < 10, "at most a few are still under way"
