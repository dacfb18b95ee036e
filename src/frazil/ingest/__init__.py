"""ingest: telemetry in. OTLP over gRPC and HTTP; each answer is true.

    otlp.py             Otlp: both ports, open
    otlp_grpc.py        OTLP/gRPC
    grpc_exports.py     who may call what, and what becomes of an export
    grpc_arrivals.py    messages that must come in time
    grpc_messages.py    compressed messages
    grpc_calls.py       how every call is refused
    grpc_services.py    health and reflection
    otlp_http.py        OTLP/HTTP
    http_port.py        HttpPort: a port for HTTP/1.1, and the application behind it
    http_exports.py     what becomes of a request
    http_request.py     what a request says about itself
    http_arrivals.py    bodies that must come in time
    http_answers.py     answers of OTLP/HTTP
    http_connection.py  bounds on connections
    http_head.py        bounds on what stands before a body
    http_transport.py   polite closing, in bounded time
    signals.py          Signal: logs, traces, metrics, and what each is called where
    access.py           Access: tokens and certificates
    admission.py        Gate: who may enter now
    bodies.py           decompression, with a cap on what comes out
    otlp_json.py        OTLP JSON to OTLP protobuf
    wire.py             the scanner: are these bytes a request, and what is in it?
    wire_tables.py      what the scanner knows of OTLP's messages
    wire_walk.py        the scanner's compiled part
    receive.py          Receiver: the path of a request to the log and back
    totals.py           what was taken in and refused since the start
    answers.py          what each error is called on the wire
    config.py           IngestConfig

Everything here belongs to the event loop; the log's writer thread answers it by futures.
"""

from frazil.ingest.access import Access
from frazil.ingest.config import IngestConfig, is_loopback
from frazil.ingest.http_answers import PREFLIGHT_AGE_S, Answer, Refusal, cors_headers
from frazil.ingest.http_connection import CUT, Manners
from frazil.ingest.http_port import Address, App, HttpPort
from frazil.ingest.http_request import Receive, Scope, Send
from frazil.ingest.otlp import Otlp
from frazil.ingest.signals import Signal
from frazil.ingest.totals import Totals, refused_by_reason, requests_by_transport, totals_of
from frazil.ingest.wire import warm

__all__ = [
    "CUT",
    "PREFLIGHT_AGE_S",
    "Access",
    "Address",
    "Answer",
    "App",
    "HttpPort",
    "IngestConfig",
    "Manners",
    "Otlp",
    "Receive",
    "Refusal",
    "Scope",
    "Send",
    "Signal",
    "Totals",
    "cors_headers",
    "is_loopback",
    "refused_by_reason",
    "requests_by_transport",
    "totals_of",
    "warm",
]
