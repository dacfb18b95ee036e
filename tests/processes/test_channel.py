"""Channel: messages arrive whole and in order; the end of the other process is noticed."""

from __future__ import annotations

import socket
import threading

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from frazil.processes import Channel


class Text(msgspec.Struct, frozen=True, tag=True):
    text: str


class Number(msgspec.Struct, frozen=True, tag=True):
    number: int


MESSAGES = st.lists(st.text().map(Text) | st.integers(-(2**63), 2**63 - 1).map(Number), max_size=20)


def pair() -> tuple[Channel[Text | Number], Channel[Text | Number], socket.socket]:
    ours, theirs = socket.socketpair()
    return Channel(ours, Text | Number), Channel(theirs, Text | Number), ours


@given(MESSAGES)
def test_messages_arrive_in_order(messages: list[Text | Number]) -> None:
    sender, receiver, _ = pair()
    for message in messages:
        sender.send(message)
    assert [receiver.receive() for _ in messages] == messages
    sender.close()
    with pytest.raises(EOFError):
        receiver.receive()
    receiver.close()


def test_a_large_message_is_received_while_it_is_sent() -> None:
    sender, receiver, _ = pair()
    message = Text("x" * 5_000_000)
    sending = threading.Thread(target=sender.send, args=(message,))
    sending.start()
    assert receiver.receive() == message
    sending.join()
    sender.close()
    receiver.close()


def test_half_a_message_is_the_end() -> None:
    _, receiver, raw = pair()
    raw.sendall(b"\x10\x00\x00\x00half")
    raw.close()
    with pytest.raises(EOFError):
        receiver.receive()
    receiver.close()


def test_a_length_that_no_message_has_is_the_end() -> None:
    _, receiver, raw = pair()
    raw.sendall(b"GET / HTTP/1.1\r\n")
    with pytest.raises(EOFError):
        receiver.receive()
    receiver.close()
    raw.close()
