"""A reverse proxy that serves a node below a path."""

from __future__ import annotations

import http.client
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PREFIX = "/tools/frazil"
CHUNK = 16 * 1024
OWN_HEADERS = {"connection", "transfer-encoding", "content-length", "date", "server"}


@contextmanager
def below_a_path(port: int) -> Iterator[str]:
    """Serve a node below `PREFIX`; returns the URL. Other paths are not found."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._forward(None)

        def do_POST(self) -> None:
            self._forward(self.rfile.read(int(self.headers.get("Content-Length", "0"))))

        def _forward(self, body: bytes | None) -> None:
            if not self.path.startswith(f"{PREFIX}/"):
                self.send_error(404)
                return
            with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=60)) as inner:
                self._answer(inner, body)

        def _answer(self, inner: http.client.HTTPConnection, body: bytes | None) -> None:
            headers = {name: value for name, value in self.headers.items() if name != "Connection"}
            inner.request(self.command, self.path.removeprefix(PREFIX), body, headers)
            answer = inner.getresponse()
            self.send_response(answer.status)
            for name, value in answer.getheaders():
                if name.lower() not in OWN_HEADERS:
                    self.send_header(name, value)
            self.send_header("Connection", "close")
            self.end_headers()
            with suppress(ConnectionError):  # the client may be gone
                while piece := answer.read1(CHUNK):
                    self.wfile.write(piece)

        def log_message(self, format: str, *args: object) -> None:
            """Log nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}{PREFIX}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
