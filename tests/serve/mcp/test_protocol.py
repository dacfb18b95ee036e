"""Messages, versions, and pages of other sites."""

from __future__ import annotations

import json
from collections.abc import Iterator
from io import BytesIO
from typing import Any

import pytest

from frazil.serve.mcp.fitting import RESPONSE_BYTES_MAX
from frazil.serve.mcp.protocol import VERSIONS, McpServer
from frazil.serve.mcp.stdio import LINE_BYTES_MAX, serve_lines
from tests.serve.served import Served, served

PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
TOKEN = "reader-0123456789"


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("node") / "data") as there:
        yield there


def _post(there: Served, body: Any, **headers: str) -> tuple[int, Any]:
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    said = there.ask("POST", "/mcp", body, sent)
    return said.status, said.json if said.body else None


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "evil.example"},
        {"Host": "evil.example:4320"},
        {"Host": "127.0.0.1.evil.example"},
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://evil.example", "Host": "evil.example"},
    ],
)
def test_pages_of_other_sites_get_nothing(node: Served, headers: dict[str, str]) -> None:
    """A page that has its own name resolve to this machine is recognized by Host or Origin."""
    status, said = _post(node, PING, **headers)
    assert status == 403
    assert "result" not in said
    assert _post(node, PING, Host="localhost") == (200, {**_pong(), "id": 1})
    assert _post(node, PING, Origin="http://localhost:3000")[0] == 200


def _pong() -> dict[str, Any]:
    return {"jsonrpc": "2.0", "result": {"resultType": "complete"}}


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        (b"{", 400, -32700),
        (b"\xff", 400, -32700),
        (b"[]", 400, -32600),
        ([PING], 400, -32600),
        ({"id": 1, "method": "ping"}, 400, -32600),
        ({**PING, "jsonrpc": "1.0"}, 400, -32600),
        ({**PING, "id": "x" * 300}, 400, -32600),
        ({**PING, "id": [1]}, 400, -32600),
        ({**PING, "method": "tools/erase"}, 404, -32601),
        ({**PING, "method": "tools/call", "params": {}}, 200, -32602),
        ({**PING, "method": "tools/call", "params": {"name": "erase"}}, 200, -32602),
    ],
)
def test_a_message_that_is_none_gets_an_error(
    node: Served, body: Any, status: int, code: int
) -> None:
    found, said = _post(node, body, Content_Type="application/json")
    assert (found, said["error"]["code"]) == (status, code)


def test_versions_and_headers_are_checked(node: Served) -> None:
    """Each version is agreed on; an unknown one gets the newest with a handshake, or an error that
    lists all. A header that contradicts the message is refused."""
    for version in VERSIONS[1:]:
        params = {"protocolVersion": version, "capabilities": {}, "clientInfo": {}}
        status, said = _post(node, {**PING, "method": "initialize", "params": params})
        assert (status, said["result"]["protocolVersion"]) == (200, version)
    params = {"protocolVersion": "1999-01-01"}
    status, said = _post(node, {**PING, "method": "initialize", "params": params})
    assert said["result"]["protocolVersion"] == VERSIONS[1]
    status, said = _post(node, PING, MCP_Protocol_Version="1999-01-01")
    assert (status, said["error"]["code"]) == (400, -32022)
    assert said["error"]["data"]["supported"] == list(VERSIONS)
    status, said = _post(node, PING, MCP_Method="tools/list")
    assert (status, said["error"]["code"]) == (400, -32020)
    assert _post(node, {"jsonrpc": "2.0", "method": "notifications/initialized"}) == (202, None)


def test_the_list_of_tools_is_short_and_the_same_each_time(node: Served) -> None:
    """Clients put it into every conversation. All parameters are described."""
    listing = {**PING, "method": "tools/list"}
    status, said = _post(node, listing)
    assert (status, _post(node, listing)) == (200, (200, said))
    assert len(json.dumps(said)) <= RESPONSE_BYTES_MAX
    for tool in said["result"]["tools"]:
        schema = tool["inputSchema"]
        assert schema["type"] == "object"
        assert all("description" in field for field in schema["properties"].values()), tool


def test_pages_of_this_machine_may_ask(node: Served) -> None:
    """As inspectors do: the browser asks first, for the headers of the protocol."""
    headers = {
        "Origin": "http://localhost:6274",
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "mcp-protocol-version,mcp-method",
    }
    said = node.ask("OPTIONS", "/mcp", None, headers)
    allowed = said.headers["access-control-allow-headers"].split(", ")
    assert {"mcp-protocol-version", "mcp-method", "content-type"} <= set(allowed)
    assert said.headers["access-control-allow-origin"] == headers["Origin"]


def test_other_methods_and_types_are_refused(node: Served) -> None:
    """There is no stream to open and no session to end."""
    assert node.ask("GET", "/mcp").status == 405
    assert node.ask("DELETE", "/mcp").status == 405
    assert _post(node, PING, Content_Type="text/plain")[0] == 415


def test_a_node_with_tokens_requires_one(tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("guarded")
    (folder / "tokens").write_text(TOKEN)
    with served(folder / "data", serve={"token_file": str(folder / "tokens")}) as there:
        assert _post(there, PING)[0] == 401
        assert _post(there, PING, Authorization="Bearer wrong")[0] == 401
        assert _post(there, PING, Authorization=f"Bearer {TOKEN}")[0] == 200


def test_lines_are_answered_one_by_one() -> None:
    """Empty lines and notifications are not answered; a line that is too long is an error, and the
    one after it is read."""
    ping = json.dumps(PING).encode()
    long = b'{"jsonrpc": "2.0", "id": 2, "method": "' + b"x" * (2 * LINE_BYTES_MAX) + b'"}'
    notification = b'{"jsonrpc": "2.0", "method": "notifications/cancelled"}'
    out = BytesIO()
    lines = b"\n".join([ping, b"", notification, long, ping])
    serve_lines(McpServer(_no_source()), BytesIO(lines), out)
    answers = [json.loads(line) for line in out.getvalue().splitlines()]
    assert [answer["id"] for answer in answers] == [1, None, 1]
    assert answers[1]["error"]["code"] == -32600


def _no_source() -> Any:
    return None
