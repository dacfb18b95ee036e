"""httpd: an HTTP/1.1 port with limits, TLS and tokens. OTLP/HTTP and the API stand on it.

    port.py        HttpPort: an open port, and the application behind it
    connection.py  HttpConnection: limits on one client's connection
    transport.py   closing a connection politely, in bounded time
    head.py        limits on a request's head
    responses.py   Answer, Refusal: what goes back to the client
    auth.py        Access: tokens and certificates

Everything here belongs to the event loop.
"""

from frazil.httpd.auth import Access
from frazil.httpd.connection import CUT, Manners
from frazil.httpd.port import Address, App, HttpPort
from frazil.httpd.responses import (
    PREFLIGHT_AGE_S,
    Answer,
    Headers,
    Receive,
    Refusal,
    Scope,
    Send,
    cors_headers,
    reason_of,
)

__all__ = [
    "CUT",
    "PREFLIGHT_AGE_S",
    "Access",
    "Address",
    "Answer",
    "App",
    "Headers",
    "HttpPort",
    "Manners",
    "Receive",
    "Refusal",
    "Scope",
    "Send",
    "cors_headers",
    "reason_of",
]
