"""RunningStreams: streams that are being read, and their cancellation: by a call of Flight, or
because the client dropped the stream or disconnected."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from pyarrow import flight

from frazil.errors import Unavailable
from frazil.results import CancelToken

WATCH_INTERVAL_S = 0.05
"""How often it is checked whether clients have dropped their streams."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Stream:
    number: bytes
    context: flight.ServerCallContext
    token: CancelToken


class RunningStreams:
    """Thread-safe. A thread of its own watches, while there are streams."""

    def __init__(self, each_turn: Callable[[], None]) -> None:
        """Calls `each_turn` in the thread, now and then."""
        # Whoever collects garbage may end a stream, also the thread that watches them.
        self._lock = threading.RLock()
        self._streams: set[_Stream] = set()
        self._each_turn = each_turn
        self._is_closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="frazil-flight", daemon=True)
        self._thread.start()

    @contextmanager
    def watched(
        self, number: bytes, context: flight.ServerCallContext, token: CancelToken
    ) -> Iterator[None]:
        """Cancel `token` when this call is. The context is not used after the block."""
        stream = _Stream(number=number, context=context, token=token)
        with self._lock:
            self._streams.add(stream)
        try:
            yield
        finally:
            with self._lock:
                self._streams.discard(stream)

    def cancel(self, number: bytes) -> bool:
        """Cancel the streams of a ticket. Returns whether there was one."""
        with self._lock:
            found = [stream for stream in list(self._streams) if stream.number == number]
        for stream in found:
            stream.token.cancel(Unavailable("the query was cancelled"))
        return bool(found)

    def _run(self) -> None:
        while not self._is_closing.wait(WATCH_INTERVAL_S):
            self._each_turn()
            with self._lock:  # a context is alive while its stream is in the set
                dropped = [each for each in list(self._streams) if each.context.is_cancelled()]
            for stream in dropped:
                stream.token.cancel(Unavailable("the client dropped the stream"))

    def close(self) -> None:
        """Cancel all streams."""
        self._is_closing.set()
        self._thread.join()
        with self._lock:
            streams = list(self._streams)
        for stream in streams:
            stream.token.cancel(Unavailable("the node is stopping"))
