"""httpd: our HTTP/1.1 server, with limits, TLS and tokens. OTLP/HTTP and the API stand on it.

    socket -> transport -> connection (httptools) -> exchange -> application
                               head: limits            |
    socket <- transport <------------- response -------+

    port.py        HttpPort: an open port and the application behind it
    connection.py  HttpConnection: one client's connection, its limits and timeouts
    head.py        limits on a request's head
    exchange.py    Exchange: one request and its response
    transport.py   PatientTransport: flow control, and closing in bounded time
    websocket.py   handshake and frames of WebSocket
    origin.py      which web pages may send requests
    responses.py   Response, HttpError, CORS headers
    auth.py        Auth: tokens and certificates
    threads.py     WorkerThreads: the one way off the event loop

Everything here is owned by the event loop.
"""

from frazil.httpd.auth import Auth, bearer_of_basic
from frazil.httpd.connection import ConnectionLimits
from frazil.httpd.exchange import (
    CUT,
    SOCKET_ACCEPT,
    SOCKET_CLOSE,
    SOCKET_PING,
    SOCKET_TEXT,
    App,
)
from frazil.httpd.origin import check_origin
from frazil.httpd.port import HttpPort, ListenAddress, bind
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
from frazil.httpd.websocket import CLOSE_FAILED, CLOSE_GOING_AWAY

__all__ = [
    "CLOSE_FAILED",
    "CLOSE_GOING_AWAY",
    "CUT",
    "PREFLIGHT_AGE_S",
    "SOCKET_ACCEPT",
    "SOCKET_CLOSE",
    "SOCKET_PING",
    "SOCKET_TEXT",
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
    "bearer_of_basic",
    "bind",
    "check_origin",
    "cors_headers",
    "reason_of",
]
