"""The Model Context Protocol over HTTP: one message per POST, one answer as JSON, no session."""

from __future__ import annotations

from http import HTTPStatus

from frazil.httpd import Response
from frazil.results import CancelToken, Limits, Result
from frazil.serve.doors.endpoint import Door, DoorEndpoint, DoorRequest
from frazil.serve.http.handler import Handler, run_query, watched
from frazil.serve.http.request import ApiRequest, check_content_type
from frazil.serve.http.responses import JSON, answer_of_body, answer_of_error
from frazil.serve.mcp.protocol import METHOD_HEADER, VERSION_HEADER, McpServer
from frazil.serve.mcp.sources import McpSource

PATH = "/mcp"


async def message(handler: Handler, call: DoorRequest) -> Response:
    """Answer one message. Its queries are cancelled when the client disconnects."""
    request = call.request
    headers = request.headers
    check_content_type(headers.get("content-type", ""), ("application/json",))
    token = CancelToken()

    def run(text: str, limits: Limits) -> Result:
        return run_query(handler.sql, token, text, limits=limits)

    source = McpSource(
        run=run,
        clock=handler.context.clock,
        url=_page_url(request, is_tls=handler.context.otlp.is_tls),
        bytes_max=handler.config.answer_bytes_max,
    )
    async with watched(request, token):
        reply = await handler.run(
            lambda: McpServer(source).answer(
                call.body, version=headers.get(VERSION_HEADER), method=headers.get(METHOD_HEADER)
            )
        )
    if reply.body is None:
        return Response(status=HTTPStatus.ACCEPTED, headers=[], body=b"")
    return answer_of_body(reply.body, JSON, reply.status)


def _page_url(request: ApiRequest, *, is_tls: bool) -> str | None:
    """Return the address under which the client knows this node."""
    host = request.headers.get("host")
    return None if host is None else f"{'https' if is_tls else 'http'}://{host}"


MCP = Door(
    prefix=PATH,
    endpoints=(DoorEndpoint(path=PATH, serve=message, methods=("POST",)),),
    error_response=answer_of_error,
)
