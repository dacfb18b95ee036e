"""A proxy that puts a path before a node, as people do who have one name for many things."""

from __future__ import annotations

import http.client
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PREFIX = "/tools/frazil"
CHUNK = 16 * 1024
KEPT_BY_ITSELF = {"connection", "transfer-encoding", "content-length", "date", "server"}


@contextmanager
def below_a_path(port: int) -> Iterator[str]:
    """The address of that node below a path; nothing else is at this server."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._pass_on(None)

        def do_POST(self) -> None:
            self._pass_on(self.rfile.read(int(self.headers.get("Content-Length", "0"))))

        def _pass_on(self, body: bytes | None) -> None:
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
                if name.lower() not in KEPT_BY_ITSELF:
                    self.send_header(name, value)
            self.send_header("Connection", "close")
            self.end_headers()
            with suppress(ConnectionError):  # whoever has asked may have left
                while piece := answer.read1(CHUNK):
                    self.wfile.write(piece)

        def log_message(self, format: str, *args: object) -> None:
            """Nobody reads it."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}{PREFIX}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
