"""Messages between the writer process of a node and its reader process.

writer                        reader
Hello ───────────────────────>          once the log is open
      <─────────────── RoomReady        a component is open
      <────── ReaderReady or StartFailed
      <──────────────────── Beat        twice a second, from the reader's event loop
      <─────────── StatusRequest        for status, health and metrics
StatusReply ─────────────────>
      <─────────── GroupsRequest        for consumer groups
GroupsReply ─────────────────>
Stop ────────────────────────>
      <───────────── ReaderStopped
"""

from __future__ import annotations

from typing import Any

import msgspec

from frazil.status import Check, ConsumerGroups, GroupsQuery, OtlpAddresses, WriterStatus


class Hello(msgspec.Struct, frozen=True, tag=True, kw_only=True):
    """What the reader needs to open its components."""

    config: bytes
    """The settings of the node, as JSON."""
    otlp: OtlpAddresses
    api_port: int | None
    log_levels: dict[str, int]
    """Levels of the program's loggers."""
    may_exit: bool
    """Whether the reader may exit when its hot tier dies; False after several restarts."""


class RoomReady(msgspec.Struct, frozen=True, tag=True):
    """A component is open."""

    name: str
    facts: dict[str, Any]


class ReaderReady(msgspec.Struct, frozen=True, tag=True):
    """All components are open."""


class StartFailed(msgspec.Struct, frozen=True, tag=True):
    """The reader cannot start, because of this error."""

    kind: str
    message: str


class Beat(msgspec.Struct, frozen=True, tag=True):
    """The reader's event loop responds, and this is the state of its components."""

    checks: list[Check]


class StatusRequest(msgspec.Struct, frozen=True, tag=True):
    """Asks for the writer's status."""


class StatusReply(msgspec.Struct, frozen=True, tag=True):
    """The writer's status."""

    status: WriterStatus


class GroupsRequest(msgspec.Struct, frozen=True, tag=True):
    """Asks for consumer groups."""

    number: int
    query: GroupsQuery


class GroupsReply(msgspec.Struct, frozen=True, tag=True):
    """Consumer groups, for the request of this number."""

    number: int
    found: ConsumerGroups


class Stop(msgspec.Struct, frozen=True, tag=True):
    """Close all components within this time, and exit."""

    within_s: float


class ReaderStopped(msgspec.Struct, frozen=True, tag=True):
    """Everything is closed."""

    facts: dict[str, Any]


ToReader = Hello | StatusReply | GroupsReply | Stop
ToWriter = (
    RoomReady | ReaderReady | StartFailed | Beat | StatusRequest | GroupsRequest | ReaderStopped
)
