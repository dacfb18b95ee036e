"""import: lines of OTLP/JSON are sent to a node, some at a time.

A line that is wrong is told of, with its place, and the others go on. The same line gives the same
bytes: a node that stored it within its digest window knows it, and does not store it twice.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field

import msgspec

from frazil.errors import Malformed
from frazil.model import Clock
from frazil.otlp_client import JSON, OtlpClient, OtlpTarget
from frazil.otlp_files.line_reader import ReadLine
from frazil.otlp_files.split import NAMES, JsonRequest, request_of

WORKER_COUNT = 4
"""Requests that are under way at the same time."""
WAITING_MAX = 2 * WORKER_COUNT
"""Lines that are read and not answered yet."""
JSON_BYTES_MAX = 4 * 1024 * 1024
"""What a node takes in JSON, if nobody told it otherwise; larger lines are cut before."""


@dataclass(slots=True, kw_only=True)
class ImportTotals:
    """What became of lines so far."""

    lines: int = 0
    bytes_read: int = 0
    records: dict[str, int] = field(default_factory=lambda: dict.fromkeys(NAMES, 0))
    """Acknowledged, by signal."""
    refused: int = 0
    """Records that the node did not take."""
    bad_lines: int = 0
    retries: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class LineOutcome:
    """What became of one line."""

    read: ReadLine
    signal: str = ""
    acknowledged: int = 0
    refused: int = 0
    trouble: str | None = None


class Importer:
    """Sends lines. One thread gives them and hears of them; workers send."""

    def __init__(self, target: OtlpTarget, *, clock: Clock) -> None:
        self.imported = ImportTotals()
        self._target = target
        self._clock = clock
        self._own = threading.local()
        self._senders: list[OtlpClient] = []

    def run(self, lines: Iterable[ReadLine], tell: Callable[[LineOutcome], None]) -> None:
        """Send all lines; `tell` hears of each in their order. `Unavailable` when the node is not
        there, and `Unauthenticated` when it lets us not in: then nothing more is sent."""
        pool = ThreadPoolExecutor(WORKER_COUNT, thread_name_prefix="frazil-import")
        try:
            for outcome in self._outcomes(pool, lines):
                self._count(outcome)
                tell(outcome)
        finally:
            pool.shutdown(cancel_futures=True)
            for sender in self._senders:
                sender.close()

    def _outcomes(
        self, pool: ThreadPoolExecutor, lines: Iterable[ReadLine]
    ) -> Iterator[LineOutcome]:
        waiting: deque[Future[LineOutcome]] = deque()
        for read in lines:
            if len(waiting) == WAITING_MAX:
                yield waiting.popleft().result()
            waiting.append(pool.submit(self._send, read))
        while waiting:
            yield waiting.popleft().result()

    def _send(self, read: ReadLine) -> LineOutcome:
        """One line, in a worker."""
        if read.trouble is not None:
            return LineOutcome(read=read, trouble=read.trouble)
        try:
            request = request_of(read.text)
        except Malformed as error:
            return LineOutcome(read=read, trouble=str(error))
        return self._send_request(read, request, read.text)

    def _send_request(self, read: ReadLine, request: JsonRequest, text: bytes) -> LineOutcome:
        if len(text) > JSON_BYTES_MAX and (halves := request.halves()) is not None:
            return self._send_halves(read, halves)
        answer = self._sender().send(request.signal, text, JSON)
        if answer.is_too_large and (halves := request.halves()) is not None:
            return self._send_halves(read, halves)
        count = request.record_count
        refused = count if answer.refused else answer.rejected_count
        return LineOutcome(
            read=read,
            signal=request.signal,
            acknowledged=count - refused,
            refused=refused,
            trouble=answer.refused or _partly(refused),
        )

    def _send_halves(self, read: ReadLine, halves: tuple[JsonRequest, JsonRequest]) -> LineOutcome:
        first, second = (
            self._send_request(read, half, msgspec.json.encode(half.content)) for half in halves
        )
        return LineOutcome(
            read=read,
            signal=first.signal,
            acknowledged=first.acknowledged + second.acknowledged,
            refused=first.refused + second.refused,
            trouble=first.trouble or second.trouble,
        )

    def _sender(self) -> OtlpClient:
        """The connection of this worker."""
        sender: OtlpClient | None = getattr(self._own, "sender", None)
        if sender is None:
            sender = self._own.sender = OtlpClient(
                self._target, clock=self._clock, is_known=any(self.imported.records.values())
            )
            self._senders.append(sender)
        return sender

    def _count(self, outcome: LineOutcome) -> None:
        imported = self.imported
        imported.lines += 1
        if outcome.trouble is not None:
            imported.bad_lines += 1
        if outcome.signal:
            imported.records[outcome.signal] += outcome.acknowledged
        imported.refused += outcome.refused
        imported.retries = sum(sender.retry_count for sender in self._senders)


def _partly(refused: int) -> str | None:
    return f"the node did not take {refused} of its records" if refused else None
