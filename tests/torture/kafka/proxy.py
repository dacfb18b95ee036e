"""KafkaProxy: between Kafka clients and a node; it loses, delays and repeats.

Requests are read as frames. A response may be lost after the node has done what was asked, a
request may be lost before it, both with their connection; responses may be late; batches and ends
of transactions may reach the node twice, as they do when a network is slow and a client retries.
"""

from __future__ import annotations

import socket
import struct
import threading
import time
from collections import Counter
from contextlib import suppress

from frazil.model import Rand

PRODUCE, END_TXN = 0, 26
REPEAT_S = (0.05, 1.0)
"""How much later a batch is repeated."""
CONNECT_S_MAX = 5.0


class KafkaProxy:
    """Has threads of its own: two per connection."""

    def __init__(self, rand: Rand) -> None:
        self.node_port = 0
        """Where requests go. Set it before the first one comes."""
        self.is_calm = False
        """Whether all passes unharmed."""
        self.fired: Counter[str] = Counter()
        self._rand = rand
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.port: int = self._listener.getsockname()[1]
        self._is_closed = False
        self._accepting = threading.Thread(target=self._accept, daemon=True)
        self._accepting.start()

    def _accept(self) -> None:
        while not self._is_closed:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        try:
            node = socket.create_connection(("127.0.0.1", self.node_port), CONNECT_S_MAX)
        except OSError:
            client.close()
            return
        for each in (client, node):
            each.settimeout(None)
            each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        pair = _Pair(client, node)
        back = threading.Thread(target=self._responses, args=(pair,), daemon=True)
        back.start()
        with suppress(OSError):
            while not pair.is_cut:
                frame = _frame(client)
                fate = self._fate(frame)
                if fate == "lost_request":
                    break
                if fate == "lost_response":
                    pair.lost.add(frame[8:12])
                if fate == "repeated_end":
                    self._send_aside(frame)
                node.sendall(frame)
                if fate == "repeated_batch":
                    delay_s = self._rand.choice(REPEAT_S)
                    threading.Timer(delay_s, self._send_aside, (frame,)).start()
        pair.cut()

    def _fate(self, frame: bytes) -> str:
        if self.is_calm:
            return ""
        key = struct.unpack_from(">h", frame, 4)[0]
        chance = self._rand.random()
        fate = ""
        if chance < 0.01:
            fate = "lost_request"
        elif chance < 0.03:
            fate = "lost_response"
        elif chance < 0.2 and key == PRODUCE:
            fate = "repeated_batch"
        elif chance < 0.3 and key == END_TXN:
            fate = "repeated_end"
        if fate:
            self.fired[fate] += 1
        return fate

    def _send_aside(self, frame: bytes) -> None:
        """Send a request over a connection of its own, and wait for its response."""
        with (
            suppress(OSError),
            socket.create_connection(("127.0.0.1", self.node_port), CONNECT_S_MAX) as aside,
        ):
            aside.sendall(frame)
            _frame(aside)

    def _responses(self, pair: _Pair) -> None:
        with suppress(OSError):
            while not pair.is_cut:
                frame = _frame(pair.node)
                if frame[4:8] in pair.lost:
                    break
                if not self.is_calm and self._rand.random() < 0.03:
                    self.fired["late_response"] += 1
                    time.sleep(0.2 * self._rand.random())
                pair.client.sendall(frame)
        pair.cut()

    def close(self) -> None:
        self._is_closed = True
        self._listener.close()


class _Pair:
    """The two halves of a connection. They end together."""

    def __init__(self, client: socket.socket, node: socket.socket) -> None:
        self.client = client
        self.node = node
        self.lost: set[bytes] = set()
        """Correlation ids of responses that never arrive."""
        self.is_cut = False

    def cut(self) -> None:
        self.is_cut = True
        for each in (self.client, self.node):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()


def _frame(source: socket.socket) -> bytes:
    """Return the next frame, with its size in front. Raises `OSError` at the end."""
    head = _exactly(source, 4)
    return head + _exactly(source, struct.unpack(">i", head)[0])


def _exactly(source: socket.socket, count: int) -> bytes:
    data = bytearray()
    while len(data) < count:
        more = source.recv(min(1 << 20, count - len(data)))
        if not more:
            raise ConnectionResetError
        data += more
    return bytes(data)
