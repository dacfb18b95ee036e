"""Guarded: a request with its handler and its sender."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar, cast

from frazil.kafka.access.authorizer import Caller
from frazil.kafka.context import RequestContext
from frazil.kafka.error_codes import ErrorCode
from frazil.kafka.router import Handler, PendingReply, Reply
from frazil.kafka.wire.schema import KafkaMessage

T = TypeVar("T")

NOT_ALLOWED = "no ACL allows this"
TOPIC_REFUSED = ErrorCode.TOPIC_AUTHORIZATION_FAILED
GROUP_REFUSED = ErrorCode.GROUP_AUTHORIZATION_FAILED
CLUSTER_REFUSED = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
TRANSACTION_REFUSED = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED


class TopicDirectory(Protocol):
    """What guards need to know of topics."""

    @property
    def creates(self) -> bool:
        """Whether Metadata creates topics."""

    def has(self, name: str) -> bool:
        """Return whether there is such a topic."""

    def name_of(self, topic_id: bytes) -> str | None:
        """Return the name of a topic; None if there is no such id."""


@dataclass(frozen=True, slots=True)
class Guarded:
    """A request that is to be checked."""

    request: Any
    context: RequestContext
    handle: Handler
    caller: Caller
    topics: TopicDirectory

    async def go_on(self) -> Reply:
        """Have the request answered."""
        return await self.handle(self.request, self.context)

    async def answer_with(self, add: Callable[[Any], None]) -> Reply:
        """Have the request answered, and add something to the response."""
        return _completed(await self.go_on(), add)

    def topic_name(self, name: str | None, topic_id: bytes) -> str | None:
        """Return the name of a topic that newer clients name by its id."""
        return name or self.topics.name_of(topic_id)


Guard = Callable[[Guarded], Awaitable[Reply]]


def split(items: Iterable[T], is_allowed: Callable[[T], bool]) -> tuple[list[T], list[T]]:
    """Return what is allowed, and what is not."""
    allowed: list[T] = []
    refused: list[T] = []
    for item in items:
        (allowed if is_allowed(item) else refused).append(item)
    return allowed, refused


def _completed(reply: Reply, add: Callable[[Any], None]) -> Reply:
    if not isinstance(reply, PendingReply):
        if reply is not None:
            add(reply)
        return reply
    if reply.is_done:
        return _completed(reply.response, add)
    whole = PendingReply()

    def complete() -> None:
        whole.complete(cast(KafkaMessage | None, _completed(reply.response, add)))

    reply.then(complete)
    return whole
