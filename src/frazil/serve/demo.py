"""Demo data, over HTTP: start it, look at it, end it."""

from __future__ import annotations

from frazil.ingest import Answer
from frazil.serve.answers import answer_of
from frazil.serve.demo_shop import DemoRequest
from frazil.serve.desk import Desk
from frazil.serve.endpoints import Nothing
from frazil.serve.request import Request


async def look_at_demo(desk: Desk, _: Nothing, __: Request) -> Answer:
    """Does a demo run on this node, and what became of the last one."""
    return answer_of(desk.demo.state)


async def start_demo(desk: Desk, asked: DemoRequest, _: Request) -> Answer:
    """Have a small shop send to this node for a while; 409 while one does already."""
    await desk.run(lambda: desk.demo.start(asked))
    return answer_of(desk.demo.state)


async def stop_demo(desk: Desk, _: Nothing, __: Request) -> Answer:
    """End the demo of this node, if one runs."""
    desk.demo.stop()
    return answer_of(desk.demo.state)
