"""Raw HTTP/2: enough to send what no proper client sends."""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from frazil.model import Signal

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

DATA, HEADERS, RST_STREAM, SETTINGS, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = (
    0x0,
    0x1,
    0x3,
    0x4,
    0x6,
    0x7,
    0x8,
    0x9,
)
END_STREAM = ACK = 0x1
END_HEADERS = 0x4
CANCEL = struct.pack(">I", 8)

FRAME_BYTES_MAX = 16 * 1024
INITIAL_WINDOW = 4
WINDOW_BYTES = 65_535
"""The initial flow-control window of a stream."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    kind: int
    flags: int
    stream: int
    payload: bytes


def frame(kind: int, flags: int = 0, stream: int = 0, payload: bytes = b"") -> bytes:
    return struct.pack(">IBI", len(payload) << 8 | kind, flags, stream) + payload


def field(name: bytes, value: bytes) -> bytes:
    """Encode a header in HPACK without Huffman coding and without the table."""
    return b"\x00" + _integer(len(name)) + name + _integer(len(value)) + value


def _integer(value: int) -> bytes:
    """Encode an HPACK integer with a prefix of seven bits."""
    if value < 0x7F:
        return bytes([value])
    out, value = bytearray([0x7F]), value - 0x7F
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def head(method: str = Signal.LOGS.method, *more: tuple[bytes, bytes]) -> bytes:
    """Return the headers of a gRPC call."""
    fields = [
        (b":method", b"POST"),
        (b":scheme", b"http"),
        (b":path", method.encode()),
        (b":authority", b"localhost"),
        (b"content-type", b"application/grpc"),
        (b"te", b"trailers"),
        *more,
    ]
    return b"".join(field(name, value) for name, value in fields)


def message(body: bytes, *, is_compressed: bool = False) -> bytes:
    """Return a gRPC message as in DATA frames."""
    return struct.pack(">?I", is_compressed, len(body)) + body


class Connection:
    """A socket to a gRPC server."""

    def __init__(self, connected: socket.socket) -> None:
        self.socket = connected
        self._received = b""

    def send(self, *frames: bytes) -> None:
        self.socket.sendall(b"".join(frames))

    def greet(self) -> None:
        """Send preface and settings, and acknowledge the server's."""
        self.send(PREFACE, frame(SETTINGS), frame(SETTINGS, ACK))

    def call(self, stream: int, headers: bytes, *messages: bytes, ends: bool = True) -> None:
        self.send(frame(HEADERS, END_HEADERS, stream, headers))
        for index, body in enumerate(messages):
            last = END_STREAM if ends and index == len(messages) - 1 else 0
            self.send(frame(DATA, last, stream, body))

    def upload(self, stream: int, data: bytes, *, ends: bool = True) -> bytes:
        """Send all data of a call as fast as flow control allows. Returns its last headers."""
        window, sent = 0, 0
        for found in self.frames():
            if found.kind == SETTINGS and not found.flags:
                window += _initial_window(found.payload)
            elif found.kind == WINDOW_UPDATE and found.stream == stream:
                window += int.from_bytes(found.payload, "big")
            elif found.kind == HEADERS and found.flags & END_STREAM:
                return found.payload
            while window > 0 and sent < len(data):
                piece = data[sent : sent + min(window, FRAME_BYTES_MAX)]
                sent += len(piece)
                window -= len(piece)
                last = END_STREAM if ends and sent == len(data) else 0
                self.send(frame(DATA, last, stream, piece))
        return b""

    def hang_up(self) -> None:
        """Close, so that a reader sees the end."""
        with suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)

    def frames(self) -> Iterator[Frame]:
        """Yield the server's frames until it closes the connection."""
        while True:
            while len(self._received) < 9 or len(self._received) < 9 + self._length():
                received = self._receive()
                if not received:
                    return
                self._received += received
            end = 9 + self._length()
            first, flags, stream = struct.unpack(">IBI", self._received[:9])
            payload, self._received = self._received[9:end], self._received[end:]
            yield Frame(kind=first & 0xFF, flags=flags, stream=stream, payload=payload)

    def _length(self) -> int:
        return int.from_bytes(self._received[:3], "big")

    def _receive(self) -> bytes:
        try:
            return self.socket.recv(65536)
        except ConnectionError:
            return b""

    def await_end(self, stream: int) -> bytes:
        """Return the last headers of a stream; nothing if it was reset or cut off."""
        for found in self.frames():
            if found.stream == stream and found.kind == HEADERS and found.flags & END_STREAM:
                return found.payload
            if found.stream == stream and found.kind == RST_STREAM:
                return b""
        return b""


def _initial_window(settings: bytes) -> int:
    pairs: dict[int, int] = dict(struct.iter_unpack(">HI", settings))
    return pairs.get(INITIAL_WINDOW, WINDOW_BYTES)


@contextmanager
def connected(port: int, timeout_s: float = 30) -> Iterator[Connection]:
    with socket.create_connection(("127.0.0.1", port), timeout_s) as opened:
        yield Connection(opened)
