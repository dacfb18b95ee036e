"""Endpoints of the demo data."""

from __future__ import annotations

from frazil.httpd import Response
from frazil.serve.demo_process import DemoRequest
from frazil.serve.http.handler import Handler
from frazil.serve.http.request import ApiRequest
from frazil.serve.http.responses import answer_of
from frazil.serve.http.router import NoParams


async def demo_state(handler: Handler, _: NoParams, __: ApiRequest) -> Response:
    """Return the state of the demo."""
    return answer_of(handler.demo.state)


async def start_demo(handler: Handler, params: DemoRequest, _: ApiRequest) -> Response:
    """Start a demo shop that sends telemetry to this node. 409 if one is running."""
    await handler.run(lambda: handler.demo.start(params))
    return answer_of(handler.demo.state)


async def stop_demo(handler: Handler, _: NoParams, __: ApiRequest) -> Response:
    """Stop the demo, if it is running."""
    handler.demo.stop()
    return answer_of(handler.demo.state)
