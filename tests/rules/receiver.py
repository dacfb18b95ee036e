"""A receiver of notifications: an HTTP server that keeps what it is sent."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Receiver:
    """Answers with `status`, and keeps path and body of each POST that it takes."""

    def __init__(self) -> None:
        self.status = 200
        self.taken: list[tuple[str, Any]] = []
        self.arrived = threading.Condition()
        self.attempts = 0
        kept = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                with kept.arrived:
                    kept.attempts += 1
                    if kept.status == 200:
                        kept.taken.append((self.path, body))
                    kept.arrived.notify_all()
                self.send_response(kept.status)
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None:
                return

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def wait_for(self, count: int, *, attempts: int = 0) -> None:
        with self.arrived:
            assert self.arrived.wait_for(
                lambda: len(self.taken) >= count and self.attempts >= attempts, 30
            ), self.taken


@contextmanager
def receiver() -> Iterator[Receiver]:
    kept = Receiver()
    thread = threading.Thread(target=kept.server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield kept
    finally:
        kept.server.shutdown()
        kept.server.server_close()
        thread.join()
