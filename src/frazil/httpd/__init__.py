"""httpd: an HTTP/1.1 port with limits, TLS and tokens. OTLP/HTTP and the API stand on it.

    port.py        HttpPort: an open port, and the application behind it
    connection.py  HttpConnection: limits on one client's connection
    transport.py   closing a connection politely, in bounded time
    head.py        limits on a request's head
    responses.py   Response, HttpError: what goes back to the client
    auth.py        Auth: tokens and certificates
    threads.py     WorkerThreads: the one way off the event loop

Everything here belongs to the event loop.
"""

from frazil.httpd.auth import Auth
from frazil.httpd.connection import CUT, ConnectionLimits
from frazil.httpd.port import App, HttpPort, ListenAddress
from frazil.httpd.responses import (
    PREFLIGHT_AGE_S,
    ClientGone,
    Headers,
    HttpError,
    Receive,
    Response,
    Scope,
    Send,
    cors_headers,
    reason_of,
)
from frazil.httpd.threads import WorkerThreads

__all__ = [
    "CUT",
    "PREFLIGHT_AGE_S",
    "App",
    "Auth",
    "ClientGone",
    "ConnectionLimits",
    "Headers",
    "HttpError",
    "HttpPort",
    "ListenAddress",
    "Receive",
    "Response",
    "Scope",
    "Send",
    "WorkerThreads",
    "cors_headers",
    "reason_of",
]
