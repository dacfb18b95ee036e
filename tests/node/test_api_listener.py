"""ApiListener: probes are answered by the writer; everything else goes to the reader, unread."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable

import pytest

from frazil.httpd import Auth
from frazil.node.api_listener import ApiListener
from frazil.status import Check

TIMEOUT_S = 20
OK = Check(component="reader", state="ok")
AWAY = Check(component="reader", state="failed", why="the reader is restarting: signal 11")


class Reader:
    """Stands where the reader would: keeps the connections it is given."""

    def __init__(self) -> None:
        self.given: list[socket.socket] = []
        self.is_given = asyncio.Event()
        self.is_running = True
        self.is_full = False

    def hand_over(self, accepted: socket.socket) -> bool:
        if self.is_full:
            return False
        self.given.append(accepted.dup())
        self.is_given.set()
        return True

    def checks(self) -> list[Check]:
        return [OK if self.is_running else AWAY]


def with_listener(work: Callable[[Reader, int], Awaitable[None]]) -> None:
    async def main() -> None:
        reader = Reader()
        listener = ApiListener(
            socket.create_server(("127.0.0.1", 0)),
            Auth(),
            hand_over=reader.hand_over,
            has_reader=lambda: reader.is_running,
            checks=reader.checks,
        )
        try:
            await asyncio.wait_for(work(reader, listener.port), TIMEOUT_S)
        finally:
            await listener.close()
            for connection in reader.given:
                connection.close()

    asyncio.run(main())


async def ask(port: int, *parts: bytes) -> bytes:
    """Send a request in parts, and return everything up to the end of the connection."""
    stream, writer = await asyncio.open_connection("127.0.0.1", port)
    for part in parts:
        writer.write(part)
        await writer.drain()
        await asyncio.sleep(0.03)
    answer = await stream.read()
    writer.close()
    return answer


@pytest.mark.parametrize(
    "parts",
    [
        (b"GET /livez HTTP/1.1\r\nHost: a\r\n\r\n",),
        (b"GET /li", b"vez HTTP/1.1\r\nHost: a\r\n\r\n"),
        (b"GET /livez HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n",),
    ],
)
def test_probes_are_answered_here(parts: tuple[bytes, ...]) -> None:
    """Also one that arrives in parts, and one whose body never comes."""

    async def work(reader: Reader, port: int) -> None:
        answer = await ask(port, *parts)
        assert answer.startswith(b"HTTP/1.1 200 OK")
        assert answer.endswith(b"\r\n\r\nok\n")
        assert b"connection: close" in answer
        assert reader.given == []

    with_listener(work)


def test_other_requests_are_handed_over_whole() -> None:
    async def work(reader: Reader, port: int) -> None:
        sent = b"GET /api/v1/status HTTP/1.1\r\nHost: a\r\n\r\n"
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(sent)
        await reader.is_given.wait()
        reader.given[0].setblocking(True)
        assert reader.given[0].recv(100) == sent
        writer.close()

    with_listener(work)


def test_without_a_reader_clients_are_told_to_retry() -> None:
    async def work(reader: Reader, port: int) -> None:
        reader.is_running = False
        answer = await ask(port, b"GET /api/v1/status HTTP/1.1\r\nHost: a\r\n\r\n")
        assert answer.startswith(b"HTTP/1.1 503")
        assert b"retry-after: 1" in answer
        assert b"the reader is restarting: signal 11; ingest continues" in answer
        answer = await ask(port, b"GET /readyz HTTP/1.1\r\nHost: a\r\n\r\n")
        assert answer.startswith(b"HTTP/1.1 503")
        assert b"[-]reader failed: the reader is restarting" in answer
        assert (await ask(port, b"GET /livez HTTP/1.1\r\nHost: a\r\n\r\n")).endswith(b"ok\n")

    with_listener(work)


def test_a_reader_that_takes_no_more_connections_is_reported() -> None:
    async def work(reader: Reader, port: int) -> None:
        reader.is_full = True
        answer = await ask(port, b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        assert answer.startswith(b"HTTP/1.1 503")
        assert b"cannot take more connections" in answer

    with_listener(work)


def test_hundreds_of_silent_connections_do_not_delay_a_probe() -> None:
    async def work(reader: Reader, port: int) -> None:
        silent = [await asyncio.open_connection("127.0.0.1", port) for _ in range(400)]
        assert (await ask(port, b"GET /readyz HTTP/1.1\r\nHost: a\r\n\r\n")).endswith(b"ok\n")
        for _, writer in silent:
            writer.close()

    with_listener(work)
