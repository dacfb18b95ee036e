"""ConnectorLink: the end of a connector's process."""

from __future__ import annotations

import select
import socket

import msgspec

from frazil.connectors.messages import (
    ConnectorAlive,
    ConnectorFailed,
    ConnectorFinished,
    ConnectorRunning,
    ToConnector,
)
from frazil.errors import FrazilError, Rejected
from frazil.processes import Channel

MESSAGES_MAX = 1000
"""Of one `received`."""


class NodeEnded(Exception):
    """The node has ended, or does not want this process any more."""


class ConnectorLink:
    """Owned by one thread. The node's end reads when it can take more: sending waits for it."""

    def __init__(self, peer: socket.socket) -> None:
        self._channel: Channel[ToConnector] = Channel(peer, ToConnector)
        self._poll = select.poll()
        self._poll.register(peer, select.POLLIN)

    def receive(self) -> ToConnector:
        """Wait for a message. Raises `NodeEnded`."""
        try:
            return self._channel.receive()
        except EOFError:
            raise NodeEnded from None

    def received(self, timeout_s: float) -> list[ToConnector]:
        """Return the messages that are there; waits for the first. Raises `NodeEnded`."""
        messages: list[ToConnector] = []
        timeout_ms = int(timeout_s * 1000)
        while len(messages) < MESSAGES_MAX and self._poll.poll(0 if messages else timeout_ms):
            messages.append(self.receive())
        return messages

    def send(self, message: msgspec.Struct) -> None:
        """Send a message. Raises `NodeEnded`."""
        try:
            self._channel.send(message)
        except OSError:
            raise NodeEnded from None

    def report_running(self) -> None:
        self.send(ConnectorRunning())

    def report_alive(self) -> None:
        self.send(ConnectorAlive())

    def report_finished(self) -> None:
        self.send(ConnectorFinished())

    def report_failure(self, error: BaseException) -> None:
        """Tell the node why this process ends."""
        text = str(error) if isinstance(error, FrazilError) else f"{type(error).__name__}: {error}"
        self.send(ConnectorFailed(text[:4000], isinstance(error, Rejected)))
