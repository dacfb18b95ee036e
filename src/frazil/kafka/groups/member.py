"""Member: a consumer in a classic group."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from frazil.kafka.context import TopicVisibility
from frazil.kafka.groups.timers import GroupTimer
from frazil.kafka.wire.messages.join_group import JoinGroupResponse
from frazil.kafka.wire.messages.sync_group import SyncGroupResponse

T = TypeVar("T")

Reply = Callable[[T], None]
"""Sends the response of a request. Called once."""

Protocols = tuple[tuple[str, bytes], ...]
"""Assignment strategies that a member can use, the one it likes best first, each with metadata."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JoiningClient:
    """Who sent a request."""

    client_id: str
    client_host: str
    api_version: int
    visibility: TopicVisibility | None = None
    """Which topics it may describe; None if all."""


@dataclass(slots=True, kw_only=True, eq=False)
class Member:
    """What the coordinator knows of a member."""

    member_id: str
    instance_id: str | None
    """The name of a static member, which keeps its assignment over a restart."""
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    protocols: Protocols
    assignment: bytes = b""
    is_new: bool = False
    """It has not been in a generation yet."""
    join_reply: Reply[JoinGroupResponse] | None = None
    """Set while it waits for the next generation."""
    sync_reply: Reply[SyncGroupResponse] | None = None
    """Set while it waits for its assignment."""
    deadline_ms: int = 0
    """It is removed unless it is heard of before."""
    timer: GroupTimer | None = field(default=None, repr=False)

    @property
    def size_bytes(self) -> int:
        """Bytes of what it sent when it joined."""
        return protocols_bytes(self.protocols)

    def metadata_of(self, protocol: str | None) -> bytes:
        """Return the metadata it sent for a protocol."""
        return next((data for name, data in self.protocols if name == protocol), b"")

    def vote(self, candidates: set[str]) -> str:
        """Return the protocol it likes best."""
        return next(name for name, _ in self.protocols if name in candidates)

    def answer_join(self, response: JoinGroupResponse) -> None:
        """Answer its JoinGroup request, if one waits."""
        reply, self.join_reply = self.join_reply, None
        if reply is not None:
            reply(response)

    def answer_sync(self, response: SyncGroupResponse) -> None:
        """Answer its SyncGroup request, if one waits."""
        reply, self.sync_reply = self.sync_reply, None
        if reply is not None:
            reply(response)


def protocols_bytes(protocols: Protocols) -> int:
    """Return the bytes of names and metadata."""
    return sum(len(name) + len(data) for name, data in protocols)
