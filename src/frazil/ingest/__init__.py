"""ingest: telemetry in. OTLP over gRPC and HTTP; each answer is true.

    admission.py     Gate: who may enter now
    config.py        IngestConfig
    ports.py         OtlpPorts: both ports, open
    receiver.py      Receiver: the path of a request to the log and back
    status_codes.py  what each error is called on the wire
    totals.py        what was taken in and refused since the start

    grpc/            OTLP/gRPC
    http/            OTLP/HTTP
    otlp/            the OTLP wire: scanning, JSON, decompression

Everything here belongs to the event loop; the log's writer thread answers it by futures.
"""

from frazil.ingest.config import IngestConfig, is_loopback
from frazil.ingest.otlp.scan import warm
from frazil.ingest.ports import OtlpPorts
from frazil.ingest.totals import Totals, refused_by_reason, requests_by_transport, totals_of

__all__ = [
    "IngestConfig",
    "OtlpPorts",
    "Totals",
    "is_loopback",
    "refused_by_reason",
    "requests_by_transport",
    "totals_of",
    "warm",
]
