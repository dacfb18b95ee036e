"""NodeLink: the reader's end of its connection to the writer."""

from __future__ import annotations

import asyncio
import itertools
import logging
import os
import socket
import threading
from collections.abc import Mapping
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from typing import Any, TypeVar

from frazil.errors import FrazilError, Unavailable
from frazil.processes import (
    Beat,
    Channel,
    GroupsReply,
    GroupsRequest,
    Hello,
    ReaderReady,
    ReaderStopped,
    RoomReady,
    StartFailed,
    StatusReply,
    StatusRequest,
    Stop,
    ToReader,
)
from frazil.status import Check, ConsumerGroups, GroupsQuery, WriterStatus

logger = logging.getLogger(__name__)

T = TypeVar("T")

STATUS_TIMEOUT_S = 5.0
"""How long to wait for the writer's report. It answers in a millisecond."""
ORPHAN_CODE = 3
"""Exit code when the writer has ended."""


class NodeLink:
    """Any thread may send; a thread of its own receives. When the writer has ended, this process
    ends: nothing it does could be seen."""

    def __init__(self, peer: socket.socket) -> None:
        self._channel: Channel[ToReader] = Channel(peer, ToReader)
        self._asking = threading.Lock()
        self._status_reply: Future[WriterStatus] | None = None
        self._groups_replies: dict[int, Future[ConsumerGroups]] = {}
        self._numbers = itertools.count()
        self._stop: Future[float] = Future()

    def hello(self) -> Hello:
        """Wait for the first message."""
        try:
            message = self._channel.receive()
        except EOFError:
            os._exit(ORPHAN_CODE)
        assert isinstance(message, Hello)
        return message

    def start(self) -> None:
        threading.Thread(target=self._receive, name="frazil-node-link", daemon=True).start()

    def _receive(self) -> None:
        try:
            while True:
                message = self._channel.receive()
                if isinstance(message, Stop):
                    self._stop.set_result(message.within_s)
                elif isinstance(message, StatusReply) and self._status_reply is not None:
                    self._status_reply.set_result(message.status)
                elif isinstance(message, GroupsReply):
                    reply = self._groups_replies.pop(message.number, None)
                    if reply is not None:  # else it is no longer waited for
                        reply.set_result(message.found)
        except EOFError:
            logger.error("the writer process has ended, and so does the reader")
            logging.shutdown()
            os._exit(ORPHAN_CODE)

    async def stopped(self) -> float:
        """Wait until the writer asks to stop. Returns the seconds there are."""
        return await asyncio.wrap_future(self._stop)

    def status(self) -> WriterStatus:
        """Ask the writer for its status."""
        with self._asking:
            reply = self._status_reply = Future()
            self._channel.send(StatusRequest())
            return _within_time(reply, "its status")

    def groups(self, query: GroupsQuery) -> ConsumerGroups:
        """Ask the writer for consumer groups."""
        number = next(self._numbers)
        reply = self._groups_replies[number] = Future()
        try:
            self._channel.send(GroupsRequest(number, query))
            return _within_time(reply, "its consumer groups")
        finally:
            self._groups_replies.pop(number, None)

    def report_room(self, name: str, facts: Mapping[str, Any]) -> None:
        self._channel.send(RoomReady(name, dict(facts)))

    def report_ready(self) -> None:
        self._channel.send(ReaderReady())

    def report_failure(self, error: FrazilError) -> None:
        self._channel.send(StartFailed(type(error).__name__, str(error)))

    def beat(self, checks: list[Check]) -> None:
        self._channel.send(Beat(checks))

    def report_stopped(self, facts: Mapping[str, Any]) -> None:
        self._channel.send(ReaderStopped(dict(facts)))


def _within_time(reply: Future[T], what: str) -> T:
    try:
        return reply.result(STATUS_TIMEOUT_S)
    except FutureTimeout:
        raise Unavailable(
            f"the writer process did not report {what} within {STATUS_TIMEOUT_S:g} s"
        ) from None
