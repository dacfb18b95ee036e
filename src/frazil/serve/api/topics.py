"""Endpoints of topics: lists, partitions, settings, messages."""

from __future__ import annotations

from http import HTTPStatus
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from frazil.errors import Malformed, Unknown
from frazil.httpd import HttpError, Response
from frazil.log import ReadablePartition, ReadableTopic
from frazil.model import KiB, doc
from frazil.serve.context import NodeContext
from frazil.serve.http.events import EVENTS, hello, parse_event_id
from frazil.serve.http.handler import Handler
from frazil.serve.http.params import Name, Since, Text, Until
from frazil.serve.http.request import ApiRequest, range_of
from frazil.serve.http.row_streams import LiveStream
from frazil.serve.topics.message import FIELD_BYTES, FIELD_BYTES_MAX
from frazil.serve.topics.reading import MessagesQuery, read_messages
from frazil.serve.topics.summary import (
    TopicPartitionDetail,
    TopicSummary,
    kind_of,
    partitions_of,
    summary_of,
)
from frazil.serve.topics.tail import TopicPoller

TOPICS_MAX = 2000
MESSAGES, MESSAGES_MAX = 100, 1000
RATE_MAX = 500
"""Messages per poll; above it the newest are sent and the others counted as skipped."""
CURSOR_CHARS_MAX = 2 * KiB
"""Of 64 partitions."""
PARTITIONS_MAX = 1024
OFFSET_MAX = 2**63 - 1

TopicName = Annotated[str, Meta(max_length=249), doc("Name of a topic.")]
PartitionNumber = Annotated[
    Annotated[int, Meta(ge=0, le=PARTITIONS_MAX)] | None, doc("One partition; otherwise all.")
]
SearchText = Annotated[Text, doc("Text in key or value, compared byte by byte.")]
FieldBytes = Annotated[
    int,
    Meta(ge=1, le=FIELD_BYTES_MAX),
    doc("Bytes of a key, value or header to return. The rest is cut, and marked as such."),
]


class TopicsParams(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which topics to list."""

    search: Annotated[Name, doc("Text in their names.")] = ""
    internal: Annotated[bool, doc("Also topics that only the node uses.")] = True


class TopicsAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """Topics, by name."""

    topics: Annotated[list[TopicSummary], doc("At most 2,000.")]
    topic_count: Annotated[int, doc("Topics that match.")]
    kafka_port: Annotated[int | None, doc("Null if the Kafka port is closed.")]


class TopicParams(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One topic."""

    topic: TopicName


class TopicConfigEntry(msgspec.Struct, frozen=True, kw_only=True):
    """A setting of a topic."""

    name: str
    value: str
    source: Annotated[
        Literal["topic", "default"], doc("`topic` if it differs from the node's default.")
    ]


class TopicAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """A topic in detail."""

    topic: TopicSummary
    partitions: list[TopicPartitionDetail]
    configs: list[TopicConfigEntry]


class MessagesParams(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which messages to return."""

    topic: TopicName
    partition: PartitionNumber = None
    offset: Annotated[
        Annotated[int, Meta(ge=0, le=OFFSET_MAX)] | None, doc("First offset; needs `partition`.")
    ] = None
    since: Since = None
    until: Until = None
    search: SearchText = ""
    order: Annotated[
        Literal["newest", "oldest"], doc("Which come first. Timestamps decide between partitions.")
    ] = "newest"
    limit: Annotated[int, Meta(ge=1, le=MESSAGES_MAX), doc("Maximum number.")] = MESSAGES
    after: Annotated[
        Annotated[str, Meta(max_length=CURSOR_CHARS_MAX)] | None,
        doc("Cursor of an earlier response."),
    ] = None
    bytes_max: FieldBytes = FIELD_BYTES


class TopicTailParams(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which new messages to send."""

    topic: TopicName
    partition: PartitionNumber = None
    search: SearchText = ""
    rate: Annotated[int, Meta(ge=1, le=RATE_MAX), doc("Maximum messages per poll.")] = RATE_MAX
    bytes_max: FieldBytes = FIELD_BYTES


async def list_topics(handler: Handler, params: TopicsParams, _: ApiRequest) -> Response:
    """List topics with partitions, records, bytes and retention."""
    context = handler.context

    def load() -> TopicsAnswer:
        text = params.search.lower()
        found = [
            topic
            for topic in context.log.topics()
            if text in topic.name.lower() and (params.internal or kind_of(topic.name) != "internal")
        ]
        status = context.writer_status().kafka
        return TopicsAnswer(
            topics=[summary_of(context, each, partitions_of(each)) for each in found[:TOPICS_MAX]],
            topic_count=len(found),
            kafka_port=None if status is None else status.port,
        )

    return await handler.respond_without_sql(load)


async def one_topic(handler: Handler, params: TopicParams, _: ApiRequest) -> Response:
    """Return one topic: partitions with offsets and sizes, settings."""
    context = handler.context

    def load() -> TopicAnswer:
        topic = _topic(context, params.topic)
        partitions = partitions_of(topic)
        return TopicAnswer(
            topic=summary_of(context, topic, partitions),
            partitions=partitions,
            configs=_configs(context, topic),
        )

    return await handler.respond_without_sql(load)


async def messages(handler: Handler, params: MessagesParams, _: ApiRequest) -> Response:
    """Return committed messages of a topic, by partition, offset or time."""
    if params.offset is not None and params.partition is None:
        raise Malformed("offset is given without partition; each partition counts its own offsets")
    times = range_of(params.since, params.until, handler.context.clock)
    query = MessagesQuery(
        partitions=() if params.partition is None else (params.partition,),
        offset=params.offset or 0,
        since_ms=None if times.since is None else _ms(times.since.timestamp()),
        until_ms=None if times.until is None else _ms(times.until.timestamp()),
        order=params.order,
        limit=params.limit,
        search=params.search.encode(),
        after=None if params.after is None else parse_event_id(params.after, "after"),
        bytes_max=params.bytes_max,
    )

    def load() -> object:
        topic = _topic(handler.context, params.topic)
        _chosen(topic, params.partition)
        return read_messages(topic, query)

    return await handler.respond_without_sql(load)


async def tail_messages(
    handler: Handler, params: TopicTailParams, request: ApiRequest
) -> LiveStream:
    """Stream new messages of a topic as server-sent events. Last-Event-ID resumes."""
    event_id = request.headers.get("last-event-id")
    resumed = None if event_id is None else parse_event_id(event_id)

    def locate() -> tuple[ReadableTopic, list[ReadablePartition], dict[int, int], dict[int, int]]:
        topic = _topic(handler.context, params.topic)
        partitions = _chosen(topic, params.partition)
        views = {each.index: each.view for each in partitions}
        ends = {index: view.last_stable_offset for index, view in views.items()}
        starts = {
            index: min(max((resumed or {}).get(index, ends[index]), view.start_offset), ends[index])
            for index, view in views.items()
        }
        return topic, partitions, ends, starts

    topic, partitions, ends, starts = await handler.run(locate)
    key = (
        *(params.topic, topic.topic_id, len(partitions)),
        *(params.partition, params.search, params.rate, params.bytes_max),
    )

    def open_poller(start: dict[int, int] | None) -> TopicPoller:
        return TopicPoller(
            handler,
            partitions,
            ends if start is None else start,
            search=params.search.encode(),
            rate=params.rate,
            bytes_max=params.bytes_max,
        )

    slot = handler.take_tail()
    start = None if resumed is None else starts
    return LiveStream(
        content_type=EVENTS,
        pieces=handler.tails.follow(key, open_poller, start, hello),
        close=slot.close,
    )


def _topic(context: NodeContext, name: str) -> ReadableTopic:
    try:
        return context.log.topic(name)
    except Unknown:
        raise HttpError(HTTPStatus.NOT_FOUND, f"there is no topic {name}") from None


def _chosen(topic: ReadableTopic, partition: int | None) -> list[ReadablePartition]:
    if partition is None:
        return list(topic.partitions)
    if partition >= len(topic.partitions):
        raise HttpError(
            HTTPStatus.NOT_FOUND,
            f"topic {topic.name} has {len(topic.partitions)} partitions, there is no {partition}",
        )
    return [topic.partitions[partition]]


def _configs(context: NodeContext, topic: ReadableTopic) -> list[TopicConfigEntry]:
    # Not at start: the room of the Kafka port takes a tenth of a second to load.
    from frazil.kafka import config_entries

    return [
        TopicConfigEntry(
            name=each.name,
            value=each.value,
            source="default" if each.is_default else "topic",
        )
        for each in config_entries(topic.config, context.kafka, context.log_config)
    ]


def _ms(seconds: float) -> int:
    return round(seconds * 1000)
