"""The server's side of WebSocket (RFC 6455): handshake and frames, without a socket.

What clients send is read, checked and dropped, but for pings and their end: we only send.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import struct
from dataclasses import dataclass

from frazil.httpd.responses import Headers

VERSION = b"13"
MESSAGE_BYTES_MAX = 64 * 1024
"""Of a message from a client."""
CONTROL_BYTES_MAX = 125
_GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
_KEY_BYTES = 16

CONTINUATION, TEXT, BINARY, CLOSE, PING, PONG = 0x0, 0x1, 0x2, 0x8, 0x9, 0xA
CLOSE_NORMAL = 1000
CLOSE_GOING_AWAY = 1001
CLOSE_PROTOCOL_ERROR = 1002
CLOSE_TOO_BIG = 1009
CLOSE_FAILED = 1011


class FrameError(Exception):
    """The client breaks the protocol; `code` is the reason that it gets."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True, slots=True)
class ControlFrame:
    """A ping, a pong or the end, from a client."""

    opcode: int
    payload: bytes


def websocket_key(method: bytes, headers: Headers) -> bytes | None:
    """Return the key of a request that offers a WebSocket; None if it offers none."""
    values = dict(headers)
    upgrade = [token.strip() for token in values.get(b"upgrade", b"").lower().split(b",")]
    key = values.get(b"sec-websocket-key", b"").strip()
    if method != b"GET" or b"websocket" not in upgrade:
        return None
    if values.get(b"sec-websocket-version", b"").strip() != VERSION:
        return None
    try:
        is_key = len(base64.b64decode(key, validate=True)) == _KEY_BYTES
    except binascii.Error:
        return None
    return key if is_key else None


def accept_of(key: bytes) -> bytes:
    """Return the proof that the server has read the key."""
    return base64.b64encode(hashlib.sha1(key + _GUID, usedforsecurity=False).digest())


def encode_frame(opcode: int, payload: bytes) -> bytes:
    """A whole message, or a control frame, from the server: not masked."""
    size = len(payload)
    if size <= CONTROL_BYTES_MAX:
        head = struct.pack("!BB", 0x80 | opcode, size)
    elif size < 1 << 16:
        head = struct.pack("!BBH", 0x80 | opcode, 126, size)
    else:
        head = struct.pack("!BBQ", 0x80 | opcode, 127, size)
    return head + payload


def encode_close(code: int, reason: str = "") -> bytes:
    text = reason.encode()[: CONTROL_BYTES_MAX - 2].decode(errors="ignore")
    return encode_frame(CLOSE, struct.pack("!H", code) + text.encode())


class ClientFrames:
    """Reads a client's frames as their bytes arrive. Holds at most one frame."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._is_in_message = False
        self._message_bytes = 0

    def feed(self, data: bytes) -> list[ControlFrame]:
        """Return the control frames that are complete. `FrameError` says why to close."""
        self._buffer += data
        found = []
        while (frame := self._next()) is not None:
            if frame.opcode >= CLOSE:
                found.append(frame)
        return found

    def _next(self) -> ControlFrame | None:
        buffer = self._buffer
        if len(buffer) < 2:
            return None
        opcode, size = buffer[0] & 0x0F, buffer[1] & 0x7F
        self._check(buffer[0], buffer[1], opcode, size)
        at = 2
        if size >= 126:
            width = 2 if size == 126 else 8
            if len(buffer) < at + width:
                return None
            size = int.from_bytes(buffer[at : at + width], "big")
            at += width
        if self._message_bytes + size > MESSAGE_BYTES_MAX:
            raise FrameError(CLOSE_TOO_BIG, f"messages have at most {MESSAGE_BYTES_MAX} bytes")
        end = at + 4 + size
        if len(buffer) < end:
            return None
        mask, masked = buffer[at : at + 4], buffer[at + 4 : end]
        is_last = bool(buffer[0] & 0x80)
        del buffer[:end]
        if opcode < CLOSE:
            self._is_in_message = not is_last
            self._message_bytes = 0 if is_last else self._message_bytes + size
            return ControlFrame(opcode, b"")
        return ControlFrame(opcode, bytes(b ^ mask[i % 4] for i, b in enumerate(masked)))

    def _check(self, first: int, second: int, opcode: int, size: int) -> None:
        if first & 0x70:
            raise FrameError(CLOSE_PROTOCOL_ERROR, "reserved bits are set")
        if not second & 0x80:
            raise FrameError(CLOSE_PROTOCOL_ERROR, "frames of a client are masked")
        if opcode not in (CONTINUATION, TEXT, BINARY, CLOSE, PING, PONG):
            raise FrameError(CLOSE_PROTOCOL_ERROR, f"there is no opcode {opcode}")
        if opcode >= CLOSE and (size > CONTROL_BYTES_MAX or not first & 0x80):
            raise FrameError(CLOSE_PROTOCOL_ERROR, "control frames are short and whole")
        if opcode < CLOSE and (opcode == CONTINUATION) != self._is_in_message:
            raise FrameError(CLOSE_PROTOCOL_ERROR, "a message has one beginning")
