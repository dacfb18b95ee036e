"""run_sink: the loop of a sink, in its process. Takes records, flushes, and says what is safe."""

from __future__ import annotations

from frazil.connectors.connector_link import ConnectorLink
from frazil.connectors.contract import RecordError, Sink, SinkRecord
from frazil.connectors.messages import (
    BatchesDelivered,
    DeliverBatches,
    RefusedRecord,
    StartConnector,
    StopConnector,
)
from frazil.connectors.own_headers import without_own_headers
from frazil.errors import Malformed
from frazil.log import read_records

IDLE_S = 1.0


def run_sink(sink: Sink, start: StartConnector, link: ConnectorLink) -> None:
    """Run a sink until the node asks to stop, or has ended."""
    sink.open()
    link.report_running()
    while True:
        for message in link.received(IDLE_S):
            if isinstance(message, StopConnector):
                return
            assert isinstance(message, DeliverBatches)
            link.send(_deliver(sink, start.topic, message))
        link.report_alive()


def _deliver(sink: Sink, topic: str, message: DeliverBatches) -> BatchesDelivered:
    records = [
        SinkRecord(topic=topic, partition=message.partition, record=without_own_headers(record))
        for payload in message.payloads
        for record in read_records(payload)
        if record.offset >= message.begin
    ]
    refused: list[RecordError] = []
    if records:
        refused = [*sink.put(records), *(sink.flush() or ())]
    known = {record.record.offset for record in records}
    for error in refused:
        if not isinstance(error, RecordError) or error.offset not in known:
            raise Malformed(f"{error!r:.100} is not a RecordError of a record that was put")
    return BatchesDelivered(
        message.partition,
        message.end,
        len(records),
        [RefusedRecord(error.partition, error.offset, str(error.reason)) for error in refused],
    )
