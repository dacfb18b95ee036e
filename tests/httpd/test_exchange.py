"""Exchange: what an application sends, as the client sees it."""

from __future__ import annotations

import asyncio

import pytest

from frazil.httpd import (
    CUT,
    App,
    Auth,
    ConnectionLimits,
    Headers,
    HttpPort,
    ListenAddress,
    Receive,
    Response,
    Scope,
    Send,
)

LIMITS = ConnectionLimits(
    count_max=10,
    count_setting="test.connections_max",
    target_bytes_max=1024,
    fetch_timeout_s=5.0,
    response_of=lambda error: Response(status=400, headers=[], body=str(error).encode()),
)
ADDRESS = ListenAddress(
    host="127.0.0.1", port=0, what="test", host_setting="test.host", port_setting="test.port"
)


def exchange(app: App, request: bytes) -> bytes:
    """Send bytes to a port with this application, and return all that comes back."""

    async def run() -> bytes:
        port = await HttpPort.open(app, ADDRESS, Auth(), LIMITS)
        reader, writer = await asyncio.open_connection("127.0.0.1", port.port)
        writer.write(request)
        reply = await reader.read()
        writer.close()
        await port.close(1)
        return reply

    return asyncio.run(run())


def responding(status: int, headers: Headers, *parts: bytes, is_cut: bool = False) -> App:
    """An application that responds with these parts."""

    async def app(_: Scope, __: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": status, "headers": headers})
        for part in parts:
            await send({"type": "http.response.body", "body": part, "more_body": True})
        last = {"type": CUT} if is_cut else {"type": "http.response.body", "body": b""}
        await send(last)

    return app


def get(method: bytes = b"GET") -> bytes:
    return method + b" / HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n"


def body_of(reply: bytes) -> bytes:
    return reply.partition(b"\r\n\r\n")[2]


def test_a_response_without_a_length_is_chunked() -> None:
    reply = exchange(responding(200, [], b"one", b"", b"three"), get())
    assert b"transfer-encoding: chunked\r\n" in reply
    assert body_of(reply) == b"3\r\none\r\n5\r\nthree\r\n0\r\n\r\n"


def test_a_response_with_a_length_is_sent_as_it_is() -> None:
    reply = exchange(responding(200, [(b"content-length", b"6")], b"abc", b"def"), get())
    assert reply.startswith(b"HTTP/1.1 200 OK\r\ndate: ")
    assert b"connection: close\r\n" in reply
    assert body_of(reply) == b"abcdef"


@pytest.mark.parametrize("headers", [[], [(b"content-length", b"3")]])
def test_a_response_to_head_has_no_body(headers: Headers) -> None:
    reply = exchange(responding(200, headers, b"abc"), get(b"HEAD"))
    assert (b"content-length: 3" in reply, b"chunked" in reply) == (bool(headers), False)
    assert body_of(reply) == b""


@pytest.mark.parametrize("status", [204, 304])
def test_a_status_without_a_body_is_not_chunked(status: int) -> None:
    assert b"transfer-encoding" not in exchange(responding(status, []), get())


def test_a_cut_response_has_no_last_chunk() -> None:
    reply = exchange(responding(200, [], b"part", is_cut=True), get())
    assert body_of(reply) == b"4\r\npart\r\n"


def test_an_application_that_fails_is_answered_with_500() -> None:
    async def app(_: Scope, __: Receive, ___: Send) -> None:
        raise ZeroDivisionError

    assert exchange(app, get()).startswith(b"HTTP/1.1 500 ")


def test_an_application_without_a_response_is_answered_with_500() -> None:
    async def app(_: Scope, __: Receive, ___: Send) -> None:
        return

    assert exchange(app, get()).startswith(b"HTTP/1.1 500 ")


@pytest.mark.parametrize("value", [b"a\r\nb: c", b"a\nb", b"a\rb"])
def test_a_header_with_a_line_break_is_not_sent(value: bytes) -> None:
    reply = exchange(responding(200, [(b"x-name", value)], b"abc"), get())
    assert reply.startswith(b"HTTP/1.1 500 ")


@pytest.mark.parametrize("length", [b"2", b"4"])
def test_a_body_of_another_length_than_declared_ends_the_connection(length: bytes) -> None:
    reply = exchange(responding(200, [(b"content-length", length)], b"abc"), get())
    assert len(body_of(reply)) != int(length)


def test_a_request_is_passed_on_as_parsed() -> None:
    scopes: list[Scope] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        scopes.append(scope)
        scope["body"] = await receive()
        await responding(204, [])(scope, receive, send)

    head = b"POST /a%20b?c=%20d HTTP/1.1\r\nHost: test\r\nConnection: close\r\nContent-Length: 2"
    exchange(app, head + b"\r\n\r\nhi")
    assert scopes[0]["method"] == "POST"
    assert (scopes[0]["path"], scopes[0]["query_string"]) == ("/a b", b"c=%20d")
    assert (b"content-length", b"2") in scopes[0]["headers"]
    assert scopes[0]["body"] == {"type": "http.request", "body": b"hi", "more_body": False}
