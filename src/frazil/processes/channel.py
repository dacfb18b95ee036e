"""Channel: messages between two processes of a node, over a local socket.

frame   length (4 bytes, little endian), then a message as MessagePack
"""

from __future__ import annotations

import socket
import struct
import threading
from contextlib import suppress
from typing import Any, Generic, TypeVar

import msgspec

T = TypeVar("T")
_LENGTH = struct.Struct("<I")
FRAME_BYTES_MAX = 64 * 1024 * 1024


class Channel(Generic[T]):
    """One end; `received` is the type of incoming messages. Any thread may send; one thread
    receives."""

    def __init__(self, peer: socket.socket, received: Any) -> None:
        self._peer = peer
        self._decoder: msgspec.msgpack.Decoder[T] = msgspec.msgpack.Decoder(received)
        self._sending = threading.Lock()

    def send(self, message: msgspec.Struct) -> None:
        """Send a message. Raises `OSError` if the other process has ended."""
        body = msgspec.msgpack.encode(message)
        assert len(body) <= FRAME_BYTES_MAX
        with self._sending:
            self._peer.sendall(_LENGTH.pack(len(body)) + body)

    def receive(self) -> T:
        """Return the next message. Raises `EOFError` if the other process has ended."""
        (length,) = _LENGTH.unpack(self._exactly(_LENGTH.size))
        if length > FRAME_BYTES_MAX:
            raise EOFError  # not a frame of ours: the stream cannot be continued
        return self._decoder.decode(self._exactly(length))

    def _exactly(self, length: int) -> bytearray:
        body = bytearray(length)
        view, at = memoryview(body), 0
        while at < length:
            try:
                count = self._peer.recv_into(view[at:])
            except OSError:
                raise EOFError from None
            if count == 0:
                raise EOFError
            at += count
        return body

    def close(self) -> None:
        """End both directions: the other process gets `EOFError`."""
        with suppress(OSError):  # the other process may have ended already
            self._peer.shutdown(socket.SHUT_RDWR)
        self._peer.close()
