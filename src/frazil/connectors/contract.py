"""The contract of connectors: what a source and a sink implement.

    source process                                    node
    open(known) <──────────────────────────────────── positions that the log remembers
    poll() ──── SourceBatch: records and position ──> one step of the log: durable together
    commit(stream, position) <─────────────────────── acknowledge upstream

    sink process                                      node
    put(records), flush() <────────────────────────── records of a topic, in order
         ──── flushed, and what was refused ────────> progress, and dead letters

All methods of one connector are called by one thread of a process of its own. An error says what
happens next: `Rejected` (`Malformed`, `TooLarge`, …) cannot be helped by a retry and stops the
connector until RESUME; after any other the process is started again, with a backoff.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from frazil.log import Record
from frazil.model import Clock, MiB

POSITION_BYTES_MAX = 1024
STREAM_BYTES_MAX = 128
"""Of the name of a stream, in UTF-8."""
BATCH_BYTES = MiB
"""A good size of a batch: what a source has at hand, up to this."""

ConnectionUse = Literal["none", "optional", "required"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceBatch:
    """Records of one partition of one topic, and the position after them. Durable together, or not
    at all."""

    records: Sequence[Record]
    """At least one, unless the stream ends. Their offsets do not matter: the log assigns them."""
    position: bytes
    """Where to go on, at most 1 KiB; means something to the source alone. Never the same twice in
    a row, and never one that an earlier batch of the stream had."""
    topic: str = ""
    """One that fits the pattern of the definition, such as `shop.{table}`; empty: the topic of the
    definition. Created if there is none."""
    partition: int = 0
    stream: str = ""
    """Part of the source that is read in order: a shard, a file, a table; empty if there is only
    one. A stream stays in one partition of one topic."""
    is_last: bool = False
    """The stream ends: its position is forgotten once these records are durable, and its name is
    not used again. Such a batch may have no records; its position does not matter."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownPosition:
    """How far a stream is durable in the log."""

    topic: str
    partition: int
    stream: str
    position: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkRecord:
    """A record of a topic, and where it is: the same each time it is put."""

    topic: str
    partition: int
    record: Record
    """With its offset."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordError:
    """A record that the other side refuses for good: it goes to the dead letters."""

    partition: int
    offset: int
    reason: str


class Source(Protocol):
    """Reads from another system."""

    def open(self, known: Sequence[KnownPosition]) -> None:
        """Connect, and go on behind these positions; there are none the first time."""

    def poll(self, timeout_s: float) -> Sequence[SourceBatch]:
        """Return what is new, in order; () if nothing comes within this time."""

    def commit(self, stream: str, position: bytes) -> None:
        """Everything of the stream up to this position is durable: acknowledge it upstream."""

    def close(self) -> None:
        """Release everything. What was not committed is read again."""


class Sink(Protocol):
    """Writes to another system. Records may come again after a crash: their topic, partition and
    offset say which."""

    def open(self) -> None:
        """Connect."""

    def put(self, records: Sequence[SinkRecord]) -> Sequence[RecordError]:
        """Take records of one partition, in order. Return those that are refused for good."""

    def flush(self) -> Sequence[RecordError] | None:
        """Return once everything that was put is safe there. Return what was refused, if that
        shows only now."""

    def close(self) -> None:
        """Release everything."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectorContext:
    """What a connector is told besides its options."""

    name: str
    topic: str
    """Of a source: the topic that records go to, or a pattern such as `shop.{table}`. Of a sink:
    the topic that it reads."""
    connection: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Options of `CONNECTION=name` in the configuration. May hold passwords."""
    roots: Sequence[str] = ()
    """Local folders that may be read or written: `stages.roots` of the configuration."""
    batch_bytes_max: int = 16 * MiB
    """Of the records of one batch, encoded. A larger one stops the connector."""
    clock: Clock


SourceFactory = Callable[[Any, ConnectorContext], Source]
"""Makes a source of its options. Does not connect: `open` does."""
SinkFactory = Callable[[Any, ConnectorContext], Sink]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectorType:
    """What `TYPE name` is in CREATE SOURCE and CREATE SINK. A package of others offers one as an
    entry point of the group `frazil.connectors`."""

    title: str
    """One line: what it connects to."""
    options: type
    """A frozen dataclass: the options of statements, with types and defaults. Its `__post_init__`
    may raise `Malformed`."""
    sink_options: type | None = None
    """Options of CREATE SINK, if a type is both and they differ."""
    source: SourceFactory | None = None
    sink: SinkFactory | None = None
    connection: ConnectionUse = "none"

    def options_for(self, role: Literal["source", "sink"]) -> type:
        """Return the options of sources or of sinks."""
        if role == "sink" and self.sink_options is not None:
            return self.sink_options
        return self.options
