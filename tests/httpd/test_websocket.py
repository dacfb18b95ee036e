"""The server's side of WebSocket: handshake of RFC 6455, frames in pieces, what is refused."""

from __future__ import annotations

import pytest

from frazil.httpd.websocket import (
    CLOSE,
    CLOSE_PROTOCOL_ERROR,
    CLOSE_TOO_BIG,
    MESSAGE_BYTES_MAX,
    PING,
    TEXT,
    ClientFrames,
    ControlFrame,
    FrameError,
    accept_of,
    encode_close,
    encode_frame,
    websocket_key,
)

KEY = b"dGhlIHNhbXBsZSBub25jZQ=="
"""The example of RFC 6455, section 1.3."""
HEADERS = [
    (b"upgrade", b"websocket"),
    (b"sec-websocket-version", b"13"),
    (b"sec-websocket-key", KEY),
]
MASK = b"\x01\x02\x03\x04"


def client_frame(first: int, payload: bytes, *, is_masked: bool = True) -> bytes:
    """A frame as a client sends it."""
    size = len(payload)
    flag = 0x80 if is_masked else 0
    if size < 126:
        head = bytes((first, flag | size))
    elif size < 1 << 16:
        head = bytes((first, flag | 126)) + size.to_bytes(2, "big")
    else:
        head = bytes((first, flag | 127)) + size.to_bytes(8, "big")
    if not is_masked:
        return head + payload
    return head + MASK + bytes(byte ^ MASK[i % 4] for i, byte in enumerate(payload))


def test_the_handshake() -> None:
    assert websocket_key(b"GET", HEADERS) == KEY
    assert accept_of(KEY) == b"s3pPLMBiTxaQ9kYGzzhZRbK+xOo="
    assert websocket_key(b"POST", HEADERS) is None
    for missing in range(len(HEADERS)):
        assert websocket_key(b"GET", HEADERS[:missing] + HEADERS[missing + 1 :]) is None
    assert websocket_key(b"GET", [*HEADERS[:2], (b"sec-websocket-key", b"c2hvcnQ=")]) is None


@pytest.mark.parametrize("size", [0, 125, 126, 65_535, 65_536])
def test_frames_of_the_server(size: int) -> None:
    """Lengths take one, three or nine bytes; nothing is masked."""
    frame = encode_frame(TEXT, b"x" * size)
    head = {True: 2, False: 4 if size < 1 << 16 else 10}[size < 126]
    assert frame[0] == 0x81
    assert len(frame) == head + size
    assert frame[1] == (size if size < 126 else 126 if size < 1 << 16 else 127)


def test_a_close_has_a_code_and_a_short_reason() -> None:
    frame = encode_close(1011, "ä" * 100)
    assert frame[:4] == bytes((0x88, len(frame) - 2)) + (1011).to_bytes(2, "big")
    assert len(frame) <= 127
    assert frame[4:].decode() == "ä" * 61


def test_frames_arrive_in_any_pieces() -> None:
    """Pings inside of a message are seen; messages are dropped."""
    sent = (
        client_frame(0x01, b"begin")
        + client_frame(0x80 | PING, b"now")
        + client_frame(0x80, b"end" * 100)
        + client_frame(0x80 | CLOSE, b"\x03\xe8")
    )
    for step in (1, 2, 7, len(sent)):
        reader, found = ClientFrames(), list[ControlFrame]()
        for at in range(0, len(sent), step):
            found += reader.feed(sent[at : at + step])
        assert found == [ControlFrame(PING, b"now"), ControlFrame(CLOSE, b"\x03\xe8")]


@pytest.mark.parametrize(
    ("frame", "code"),
    [
        (client_frame(0x81, b"x", is_masked=False), CLOSE_PROTOCOL_ERROR),
        (client_frame(0xC1, b"x"), CLOSE_PROTOCOL_ERROR),
        (client_frame(0x83, b"x"), CLOSE_PROTOCOL_ERROR),
        (client_frame(0x80, b"x"), CLOSE_PROTOCOL_ERROR),
        (client_frame(0x01, b"x") + client_frame(0x81, b"x"), CLOSE_PROTOCOL_ERROR),
        (client_frame(PING, b"x"), CLOSE_PROTOCOL_ERROR),
        (client_frame(0x80 | PING, b"x" * 126), CLOSE_PROTOCOL_ERROR),
        (client_frame(0x81, b"x" * (MESSAGE_BYTES_MAX + 1))[:16], CLOSE_TOO_BIG),
        (client_frame(0x01, b"x" * MESSAGE_BYTES_MAX) + client_frame(0x80, b"x"), CLOSE_TOO_BIG),
    ],
)
def test_broken_frames_end_the_connection(frame: bytes, code: int) -> None:
    """Also before a length that is too large has been buffered."""
    with pytest.raises(FrameError) as error:
        ClientFrames().feed(frame)
    assert error.value.code == code
