"""run_source: the loop of a source, in its process. Polls, encodes, sends, and commits."""

from __future__ import annotations

from collections.abc import Sequence

from frazil.connectors.connector_link import ConnectorLink
from frazil.connectors.contract import (
    STREAM_BYTES_MAX,
    KnownPosition,
    Source,
    SourceBatch,
)
from frazil.connectors.messages import (
    FetchedBatch,
    StartConnector,
    StopConnector,
    StreamDurable,
)
from frazil.connectors.own_headers import without_own_headers
from frazil.connectors.step_names import step_name
from frazil.errors import Malformed, TooLarge
from frazil.log import Record, SourceStep, append_of_records

POLL_S = 0.5
"""How long a source may wait for something new: what is durable is committed as late as that."""

StreamKey = tuple[str, int, str]
"""Topic, partition, stream."""


class _Encoder:
    """Batches as the log stores them; knows the position that each one continues."""

    def __init__(self, start: StartConnector) -> None:
        self._start = start
        self._positions: dict[StreamKey, bytes] = {
            (known.topic, known.partition, known.stream): known.position for known in start.known
        }

    def encode(self, batch: SourceBatch) -> FetchedBatch:
        """Return the message for a batch. `Malformed` or `TooLarge` if it breaks the contract."""
        _check(batch)
        start = self._start
        key = (batch.topic or start.topic, batch.partition, batch.stream)
        payload = b""
        if batch.records:
            step = SourceStep(
                step_name(start.name, batch.stream),
                start.epoch,
                self._positions.get(key),
                batch.position,
            )
            records = [without_own_headers(record) for record in batch.records]
            payload = append_of_records(records, step=step).payload
            if len(payload) > start.batch_bytes_max:
                raise TooLarge(
                    f"a batch of {len(batch.records)} records has {len(payload)} bytes; the limit "
                    f"is {start.batch_bytes_max}"
                )
            self._positions[key] = batch.position
        if batch.is_last:
            self._positions.pop(key, None)
        return FetchedBatch(
            key[0], batch.partition, batch.stream, batch.position, payload, batch.is_last
        )


def _check(batch: object) -> None:
    """Raise `Malformed` if a source has returned something else than a batch."""
    if not isinstance(batch, SourceBatch):
        raise Malformed(f"poll returned a {type(batch).__name__}; it must return SourceBatch")
    if not batch.records and not batch.is_last:
        raise Malformed("poll returned a batch without records; leave it out until there are some")
    if not isinstance(batch.position, bytes) or not isinstance(batch.stream, str):
        raise Malformed("the position of a batch is bytes, and its stream a text")
    if len(batch.stream.encode()) > STREAM_BYTES_MAX:
        raise TooLarge(f"the name of a stream has more than {STREAM_BYTES_MAX} bytes")
    for record in batch.records:
        if not isinstance(record, Record) or not isinstance(record.timestamp_ms, int):
            raise Malformed(f"{record!r:.100} is not a Record with a timestamp in milliseconds")
        values = (record.key, record.value, *(value for _, value in record.headers))
        if not all(value is None or isinstance(value, bytes) for value in values):
            raise Malformed("keys, values and headers of records are bytes, or None")


def run_source(source: Source, start: StartConnector, link: ConnectorLink) -> None:
    """Run a source until the node asks to stop, or has ended."""
    encoder = _Encoder(start)
    source.open(
        [
            KnownPosition(
                topic=known.topic,
                partition=known.partition,
                stream=known.stream,
                position=known.position,
            )
            for known in start.known
        ]
    )
    link.report_running()
    waiting_bytes = 0
    while True:
        is_full = waiting_bytes >= start.in_flight_bytes_max
        for message in link.received(POLL_S if is_full else 0):
            if isinstance(message, StopConnector):
                return
            assert isinstance(message, StreamDurable)
            waiting_bytes -= message.size_bytes
            if message.position:
                source.commit(message.stream, message.position)
        if waiting_bytes >= start.in_flight_bytes_max:
            link.report_alive()
            continue
        batches = source.poll(POLL_S)
        if not isinstance(batches, Sequence):
            raise Malformed(f"poll returned a {type(batches).__name__}; it must return a sequence")
        for batch in batches:
            fetched = encoder.encode(batch)
            waiting_bytes += len(fetched.payload)
            link.send(fetched)
        if not batches:
            link.report_alive()
