"""ingest: receives OTLP over gRPC and HTTP. A request is acknowledged once it is durable.

    grpc/ or http/ -> Gate -> read body -> decompress -> JSON to protobuf -> scan -> append to log
                       |                                                     |              |
                    refused                                      malformed, records    durable:
                                                                     rejected        acknowledged

    ports.py         OtlpPorts: both ports
    grpc/            OTLP/gRPC
    http/            OTLP/HTTP
    admission.py     Gate, PendingReads: which requests may enter, and which must leave
    receiver.py      Receiver: the path of a request to the log
    otlp/            the OTLP wire format: scan, JSON, decompression
    status_codes.py  HTTP and gRPC status of each error
    totals.py        requests and records accepted and refused since start

Everything is owned by the event loop. Large bodies are decompressed, converted and scanned in the
threads "frazil-ingest". The log's writer thread completes futures.
"""

from frazil.ingest.otlp.scan import warm
from frazil.ingest.ports import OtlpPorts
from frazil.ingest.totals import Totals, refused_by_reason, requests_by_transport, totals_of

__all__ = [
    "OtlpPorts",
    "Totals",
    "refused_by_reason",
    "requests_by_transport",
    "totals_of",
    "warm",
]
