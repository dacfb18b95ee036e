"""Messages between the node and the process of a connector; frames as in `processes.Channel`.

node                              connector
StartConnector ──────────────────>              what to run
      <───── ConnectorRunning or ConnectorFailed
      <────────────────── FetchedBatch          source: one encoded batch
StreamDurable ───────────────────>              source: a stream is durable up to a position
DeliverBatches ──────────────────>              sink: batches of one partition
      <────────────── BatchesDelivered          sink: they are safe there
      <──────────────── ConnectorAlive          nothing else to say
StopConnector ───────────────────>
      <───────────── ConnectorFinished
"""

from __future__ import annotations

from typing import Literal

import msgspec

from frazil.connectors.options import OptionValue

Role = Literal["source", "sink"]


class StreamPosition(msgspec.Struct, frozen=True, array_like=True):
    """How far a stream is durable."""

    topic: str
    partition: int
    stream: str
    position: bytes


class StartConnector(msgspec.Struct, frozen=True, tag=True, kw_only=True):
    """What the process is to run. With `is_check` it only says whether it could."""

    role: Role
    name: str
    type_name: str
    options: dict[str, OptionValue]
    topic: str
    connection_name: str
    connection: dict[str, str]
    roots: list[str]
    epoch: int
    known: list[StreamPosition]
    batch_bytes_max: int
    in_flight_bytes_max: int
    is_check: bool = False


class ConnectorRunning(msgspec.Struct, frozen=True, tag=True):
    """The connector is open; or, after a check, could be."""


class ConnectorFailed(msgspec.Struct, frozen=True, tag=True):
    """The connector has raised this error, and the process ends."""

    message: str
    is_fatal: bool
    """A retry cannot help."""


class FetchedBatch(msgspec.Struct, frozen=True, tag=True):
    """A batch of a source, encoded with its step; empty if the stream only ends."""

    topic: str
    partition: int
    stream: str
    position: bytes
    payload: bytes
    is_last: bool


class StreamDurable(msgspec.Struct, frozen=True, tag=True):
    """Everything of a stream up to a position is durable: so many batches and bytes more."""

    stream: str
    position: bytes
    size_bytes: int


class DeliverBatches(msgspec.Struct, frozen=True, tag=True):
    """Batches of one partition, whole and as they are stored. Records before `begin` are not for
    the sink."""

    partition: int
    begin: int
    end: int
    payloads: list[bytes]


class RefusedRecord(msgspec.Struct, frozen=True, array_like=True):
    """A record that the other side refuses for good."""

    partition: int
    offset: int
    reason: str


class BatchesDelivered(msgspec.Struct, frozen=True, tag=True):
    """All records of a `DeliverBatches` are safe on the other side, or refused for good."""

    partition: int
    end: int
    count: int
    refused: list[RefusedRecord]


class ConnectorAlive(msgspec.Struct, frozen=True, tag=True):
    """The connector responds."""


class StopConnector(msgspec.Struct, frozen=True, tag=True):
    """Close the connector and exit."""


class ConnectorFinished(msgspec.Struct, frozen=True, tag=True):
    """The connector is closed."""


ToConnector = StartConnector | StreamDurable | DeliverBatches | StopConnector
FromConnector = (
    ConnectorRunning
    | ConnectorFailed
    | FetchedBatch
    | BatchesDelivered
    | ConnectorAlive
    | ConnectorFinished
)
