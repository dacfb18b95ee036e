"""Demo data, over HTTP: start it, look at it, end it."""

from __future__ import annotations

from frazil.httpd import Response
from frazil.serve.demo_process import DemoRequest
from frazil.serve.http.handler import Handler
from frazil.serve.http.request import ApiRequest
from frazil.serve.http.responses import answer_of
from frazil.serve.http.router import NoParams


async def look_at_demo(desk: Handler, _: NoParams, __: ApiRequest) -> Response:
    """Does a demo run on this node, and what became of the last one."""
    return answer_of(desk.demo.state)


async def start_demo(desk: Handler, asked: DemoRequest, _: ApiRequest) -> Response:
    """Have a small shop send to this node for a while; 409 while one does already."""
    await desk.run(lambda: desk.demo.start(asked))
    return answer_of(desk.demo.state)


async def stop_demo(desk: Handler, _: NoParams, __: ApiRequest) -> Response:
    """End the demo of this node, if one runs."""
    desk.demo.stop()
    return answer_of(desk.demo.state)
