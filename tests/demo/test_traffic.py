"""The shop tells one story in three signals: what one says, the others do not deny."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any

import pytest

from frazil.demo.incidents import CYCLE_S
from tests.demo.records import NS_PER_S, START_NS, Sent, Told, sent_in, traffic

SERVER, CLIENT, PRODUCER, CONSUMER = 2, 3, 4, 5
ERROR_STATUS = 2
DELTA = 1


@pytest.fixture(scope="module")
def sent() -> Sent:
    """All of the story, once."""
    return sent_in(CYCLE_S)


def test_one_seed_is_one_shop() -> None:
    """The same seed and times give the same bytes, another seed gives others."""
    until_ns = START_NS + 20 * NS_PER_S
    bodies = []
    for seed in (1, 1, 2):
        shop = traffic(seed, 10)
        exports = [*shop.advance(until_ns), *shop.end()]
        bodies.append([(export.signal, export.body) for export in exports])
    assert bodies[0] == bodies[1]
    assert bodies[0] != bodies[2]


def test_how_time_is_cut_does_not_matter() -> None:
    """A shop that is looked at more often says the same."""
    at_once, in_steps = traffic(3, 10), traffic(3, 10)
    until_ns = START_NS + 15 * NS_PER_S
    first = [*at_once.advance(until_ns), *at_once.end()]
    second = [e for s in range(16) for e in in_steps.advance(START_NS + s * NS_PER_S)]
    second += in_steps.end()
    assert [e.body for e in first] == [e.body for e in second]


def test_every_parent_is_there(sent: Sent) -> None:
    """In the same trace; each trace has one root, and ids are never used twice."""
    places = {(told.record.trace_id, told.record.span_id) for told in sent.spans}
    assert len(places) == len(sent.spans)
    roots: Counter[bytes] = Counter()
    for told in sent.spans:
        span = told.record
        if span.parent_span_id:
            assert (span.trace_id, span.parent_span_id) in places
        else:
            roots[span.trace_id] += 1
        assert span.start_time_unix_nano <= span.end_time_unix_nano
    assert set(roots.values()) == {1}
    assert roots.keys() == {trace_id for trace_id, _ in places}


def test_servers_answer_clients_of_other_pods(sent: Sent) -> None:
    """A server's span is below a client's, of another service; roots are the storefront's and the
    mailer's."""
    by_id = {told.record.span_id: told for told in sent.spans}
    for told in sent.spans:
        span = told.record
        if not span.parent_span_id:
            assert (told.service, span.kind) in {("storefront", SERVER), ("mailer", CONSUMER)}
        elif span.kind == SERVER:
            parent = by_id[span.parent_span_id]
            assert parent.record.kind == CLIENT
            assert parent.service != told.service
            assert parent.record.start_time_unix_nano <= span.start_time_unix_nano
        else:
            assert by_id[span.parent_span_id].resource == told.resource


def test_mails_are_linked_to_orders(sent: Sent) -> None:
    """A consumer is in a trace of its own, and says which message it took."""
    producers = {
        (told.record.trace_id, told.record.span_id)
        for told in sent.spans
        if told.record.kind == PRODUCER
    }
    consumers = [told.record for told in sent.spans if told.record.kind == CONSUMER]
    links = [(link.trace_id, link.span_id) for span in consumers for link in span.links]
    assert len(links) == len(consumers) == len(set(links)) > 100
    assert set(links) <= producers


def test_logs_and_exemplars_point_to_spans(sent: Sent) -> None:
    """Whatever names a span names one that there is, of the same pod."""
    places = {
        (told.record.trace_id, told.record.span_id): told.resource["service.instance.id"]
        for told in sent.spans
    }
    placed = [told for told in sent.logs if told.record.trace_id]
    assert 0 < len(sent.logs) - len(placed) < len(placed)
    for told in placed:
        place = told.record.trace_id, told.record.span_id
        assert places[place] == told.resource["service.instance.id"]
    exemplars = [
        exemplar
        for told in sent.points
        if hasattr(told.record, "exemplars")
        for exemplar in told.record.exemplars
    ]
    assert len(exemplars) > 1000
    assert all((each.trace_id, each.span_id) in places for each in exemplars)


def newest(points: list[Told], name: str) -> dict[Any, Any]:
    """The last point of each series of a metric."""
    found: dict[Any, Any] = {}
    for told in points:
        if told.metric.name == name:
            pod = told.resource["service.instance.id"]
            found[pod, tuple(sorted(told.attributes.items()))] = told.record
    return found


def by_labels(points: list[Told], name: str) -> Counter[Any]:
    """How many were counted, by what is said of them, in all pods."""
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
    """As many measurements as spans, for each route, method or query and each outcome."""
    wanted = Counter(
        tuple((label, told.attributes[label]) for label in labels)
        for told in sent.spans
        if told.record.kind == kind and marker in told.attributes
    )
    assert by_labels(sent.points, name) == wanted
    for point in newest(sent.points, name).values():
        if hasattr(point, "bucket_counts"):
            assert sum(point.bucket_counts) == point.count
        else:
            assert sum(point.positive.bucket_counts) + point.zero_count == point.count


def test_sums_count_spans(sent: Sent) -> None:
    """Orders, their worth, and mails."""
    orders = [told.attributes for told in sent.spans if "shop.order.id" in told.attributes]
    counted = sum(point.as_int for point in newest(sent.points, "shop.orders").values())
    assert counted == len(orders) > 100
    revenue = sum(point.as_double for point in newest(sent.points, "shop.revenue").values())
    assert revenue == pytest.approx(sum(facts["shop.order.total"] for facts in orders))
    mails = [told for told in sent.points if told.metric.name == "shop.mails.sent"]
    assert {told.metric.sum.aggregation_temporality for told in mails} == {DELTA}
    consumers = [told for told in sent.spans if told.record.kind == CONSUMER]
    assert sum(told.record.as_int for told in mails) == len(consumers)
    ends = [told.record.time_unix_nano for told in mails]
    assert [told.record.start_time_unix_nano for told in mails][1:] == ends[:-1]
    queue = [told.record.as_int for told in sent.points if "queue" in told.metric.name]
    assert min(queue) >= 0
    assert max(queue) > 3, "the mail server was away"


def test_there_is_something_of_everything(sent: Sent) -> None:
    """All kinds of metrics and spans, all severities in their shares, all kinds of bodies."""
    assert len({told.service for told in sent.spans}) == 9
    assert {told.metric.WhichOneof("data") for told in sent.points} == {
        "histogram",
        "exponential_histogram",
        "sum",
        "gauge",
        "summary",
    }
    assert {told.record.kind for told in sent.spans} == {1, 2, 3, 4, 5}
    shares = Counter(told.record.severity_text for told in sent.logs)
    assert shares["FATAL"] == 1
    assert shares["ERROR"] < shares["WARN"] < shares["TRACE"] < shares["DEBUG"]
    assert shares["ERROR"] > 10
    bodies = {told.record.body.WhichOneof("value") for told in sent.logs}
    assert bodies == {"string_value", "kvlist_value"}
    assert any("\n" in told.record.body.string_value for told in sent.logs)
    traces = [
        event
        for told in sent.spans
        for event in told.record.events
        if event.name == "exception" and "exception.stacktrace" in {a.key for a in event.attributes}
    ]
    assert traces


def test_the_story_can_be_seen(sent: Sent) -> None:
    """While the payment provider is slow, orders fail; and each deploy is a new version."""
    failed: dict[bool, list[bool]] = defaultdict(list)
    for told in sent.spans:
        if told.service == "storefront" and told.record.name == "POST /checkout":
            story_s = (told.record.start_time_unix_nano - START_NS) / NS_PER_S
            is_error = told.record.status.code == ERROR_STATUS
            failed[300 <= story_s < 390].append(is_error)
    share_in, share_out = (sum(failed[when]) / len(failed[when]) for when in (True, False))
    assert share_in > 0.2 > 0.1 > share_out
    versions = defaultdict(set)
    for told in sent.spans:
        versions[told.service].add(told.resource["service.version"])
    assert versions["checkout"] == {"1.7.4", "1.8.0", "1.8.1"}
    assert len(versions["catalogue"]) == 2


def test_a_number_of_visits(sent: Sent) -> None:
    """Nobody comes after the last one, and his spans are still sent."""
    shop = traffic(5, 50)
    exports = list(shop.advance(START_NS + 10 * NS_PER_S, visits_max=40))
    assert shop.visit_count == 40
    assert not shop.visits_under_way()
    assert sum(export.record_count for export in [*exports, *shop.end()]) > 40
    roots = [t for t in sent.spans if t.service == "storefront" and not t.record.parent_span_id]
    assert 0 <= sent.visit_count - len(roots) < 10, "at most a few are still under way"
