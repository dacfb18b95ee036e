"""The log's owner serves what only it may change, to a process that observes the log.

    observer                                    owner
    LogOwner.call ──── message over a socket ──> serve ──> Log
             <──────── Done or Refused ─────────

Every message has one reply, in order.
"""

from __future__ import annotations

import logging
import socket
import threading
from contextlib import closing, suppress
from uuid import UUID

import msgspec

from frazil import errors
from frazil.errors import FrazilError, Unavailable
from frazil.log.copied_sources import CopiedSource
from frazil.log.dedup.source_positions import SourcePosition
from frazil.log.log import Log
from frazil.processes import Channel
from frazil.settings import TopicConfig

logger = logging.getLogger(__name__)


class KeepProgress(msgspec.Struct, frozen=True, tag=True):
    """Register a subscriber from the earliest offset on, or resume it."""

    name: str
    topic: str


class FindSubscriber(msgspec.Struct, frozen=True, tag=True):
    """Does a subscriber exist?"""

    name: str


class Finish(msgspec.Struct, frozen=True, tag=True):
    """A subscriber has finished offsets."""

    name: str
    partition: int
    begin: int
    end: int


class Reopen(msgspec.Struct, frozen=True, tag=True):
    """A subscriber needs offsets again."""

    name: str
    partition: int
    begin: int
    end: int


class SaveProgress(msgspec.Struct, frozen=True, tag=True):
    """Make the progress of a subscriber durable."""

    name: str


class PublishLake(msgspec.Struct, frozen=True, tag=True):
    """The lake holds everything below this offset."""

    topic: str
    partition: int
    lake_watermark: int
    topic_id: UUID | None = None


class Discard(msgspec.Struct, frozen=True, tag=True):
    """Rows below this offset were removed from the lake."""

    topic: str
    partition: int
    end: int


class CreateTopic(msgspec.Struct, frozen=True, tag=True):
    """Create a topic, unless there is one with these settings."""

    name: str
    config: TopicConfig


class DeleteTopic(msgspec.Struct, frozen=True, tag=True):
    """Delete a topic with its records."""

    name: str


class FindSource(msgspec.Struct, frozen=True, tag=True):
    """How far was a source copied into a partition?"""

    topic: str
    source: str
    partition: int


class FindSources(msgspec.Struct, frozen=True, tag=True):
    """Which sources have a name that begins so?"""

    prefix: str


class ForgetSources(msgspec.Struct, frozen=True, tag=True):
    """Forget all sources whose name begins so."""

    prefix: str


class ForgetSource(msgspec.Struct, frozen=True, tag=True):
    """Forget a source that has ended."""

    topic: str
    source: str
    partition: int


class Unsubscribe(msgspec.Struct, frozen=True, tag=True):
    """Remove a subscriber and its progress."""

    name: str


class Done(msgspec.Struct, frozen=True, tag=True):
    """The call succeeded."""

    value: int = 0


class FoundSource(msgspec.Struct, frozen=True, tag=True):
    """The position of a source; None if it never was copied."""

    position: SourcePosition | None


class FoundSources(msgspec.Struct, frozen=True, tag=True):
    """Sources, and how far they were copied."""

    sources: list[CopiedSource]


class Refused(msgspec.Struct, frozen=True, tag=True):
    """The call failed with this error."""

    kind: str
    message: str


Call = (
    KeepProgress
    | FindSubscriber
    | Finish
    | Reopen
    | SaveProgress
    | PublishLake
    | Discard
    | CreateTopic
    | DeleteTopic
    | FindSource
    | FindSources
    | ForgetSources
    | ForgetSource
    | Unsubscribe
)
Reply = Done | FoundSource | FoundSources | Refused


class LogOwner:
    """The owner, as an observer calls it. Any thread may call."""

    def __init__(self, peer: socket.socket) -> None:
        self._channel: Channel[Reply] = Channel(peer, Reply)
        self._turn = threading.Lock()

    def call(self, message: Call) -> int:
        """Send a message and wait for the reply. Raises the owner's error."""
        reply = self._ask(message)
        assert isinstance(reply, Done)
        return reply.value

    def source_position(self, topic: str, source: str, partition: int) -> SourcePosition | None:
        """Return how far a source was copied into a partition. Raises the owner's error."""
        reply = self._ask(FindSource(topic, source, partition))
        assert isinstance(reply, FoundSource)
        return reply.position

    def sources(self, prefix: str) -> list[CopiedSource]:
        """Return the sources whose name begins so. Raises the owner's error."""
        reply = self._ask(FindSources(prefix))
        assert isinstance(reply, FoundSources)
        return reply.sources

    def _ask(self, message: Call) -> Done | FoundSource | FoundSources:
        with self._turn:
            try:
                self._channel.send(message)
                reply = self._channel.receive()
            except (EOFError, OSError):
                raise Unavailable("the process that owns the log has ended") from None
        if isinstance(reply, Refused):
            kind: type[FrazilError] = getattr(errors, reply.kind, Unavailable)
            raise kind(reply.message)
        return reply

    def close(self) -> None:
        self._channel.close()


def serve_observer(log: Log, peer: socket.socket) -> None:
    """Answer the calls of one observer until it ends. Runs in a thread of its own, which owns the
    subscribers that the observer registers."""
    channel: Channel[Call] = Channel(peer, Call)
    with suppress(EOFError, BrokenPipeError), closing(channel):
        while True:
            call = channel.receive()
            reply: Reply
            try:
                reply = _answer(log, call)
            except FrazilError as error:
                reply = Refused(type(error).__name__, str(error))
            except OSError as error:
                logger.error("cannot serve an observer", extra={"reason": str(error)})
                reply = Refused(Unavailable.__name__, f"the log's files cannot be changed: {error}")
            channel.send(reply)


def _answer(log: Log, call: Call) -> Done | FoundSource | FoundSources:
    match call:
        case KeepProgress(name, topic):
            log.keep_progress(name, topic)
        case FindSubscriber(name):
            return Done(int(log.has_subscriber(name)))
        case Finish(name, partition, begin, end):
            log.subscriber(name).finish(partition, begin, end)
        case Reopen(name, partition, begin, end):
            log.subscriber(name).reopen(partition, begin, end)
        case SaveProgress(name):
            return Done(log.subscriber(name).step())
        case PublishLake(topic, partition, lake_watermark, topic_id):
            log.publish(topic, partition, lake_watermark, topic_id)
        case Discard(topic, partition, end):
            log.discard(topic, partition, end)
        case CreateTopic(name, config):
            log.create_topic(name, config)
        case DeleteTopic(name):
            log.delete_topic(name)
        case FindSource(topic, source, partition):
            return FoundSource(log.source_position(topic, source, partition=partition))
        case FindSources(prefix):
            return FoundSources(log.sources.find(prefix))
        case ForgetSources(prefix):
            return Done(log.sources.forget(prefix))
        case ForgetSource(topic, source, partition):
            return Done(int(log.sources.forget_one(topic, source, partition=partition)))
        case Unsubscribe(name):
            log.unsubscribe(name)
    return Done()
