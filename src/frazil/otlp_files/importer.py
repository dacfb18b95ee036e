"""Importer: sends OTLP/JSON lines to a node, several at a time.

An invalid line is reported with its location, and the rest is sent. The same line gives the same
bytes, so a node stores it once within its digest window.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field

import msgspec

from frazil.errors import Malformed
from frazil.model import LEVEL_NAMES, Clock, JsonRequest, request_of
from frazil.otlp_client import JSON, OtlpClient, OtlpTarget
from frazil.otlp_files.line_reader import ReadLine

WORKER_COUNT = 4
"""Requests in flight."""
PENDING_MAX = 2 * WORKER_COUNT
"""Lines read and not answered yet."""
JSON_BYTES_MAX = 4 * 1024 * 1024
"""Default limit of a node for JSON; larger lines are split before sending."""


@dataclass(slots=True, kw_only=True)
class ImportTotals:
    """Totals so far."""

    lines: int = 0
    bytes_read: int = 0
    records: dict[str, int] = field(default_factory=lambda: dict.fromkeys(LEVEL_NAMES, 0))
    """Acknowledged records, by signal."""
    refused: int = 0
    """Rejected records."""
    bad_lines: int = 0
    retries: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class LineOutcome:
    """The result of one line."""

    read: ReadLine
    signal: str = ""
    acknowledged: int = 0
    refused: int = 0
    error: str | None = None


class Importer:
    """Sends lines. One thread reads lines and reports; workers send."""

    def __init__(self, target: OtlpTarget, *, clock: Clock) -> None:
        self.totals = ImportTotals()
        self._target = target
        self._clock = clock
        self._local = threading.local()
        self._clients: list[OtlpClient] = []

    def run(self, lines: Iterable[ReadLine], report: Callable[[LineOutcome], None]) -> None:
        """Send all lines; `report` is called for each, in order. Stops with Unavailable if the node
        is unreachable, and with Unauthenticated if it rejects the token."""
        pool = ThreadPoolExecutor(WORKER_COUNT, thread_name_prefix="frazil-import")
        try:
            for outcome in self._outcomes(pool, lines):
                self._count(outcome)
                report(outcome)
        finally:
            pool.shutdown(cancel_futures=True)
            for client in self._clients:
                client.close()

    def _outcomes(
        self, pool: ThreadPoolExecutor, lines: Iterable[ReadLine]
    ) -> Iterator[LineOutcome]:
        pending: deque[Future[LineOutcome]] = deque()
        for read in lines:
            if len(pending) == PENDING_MAX:
                yield pending.popleft().result()
            pending.append(pool.submit(self._send, read))
        while pending:
            yield pending.popleft().result()

    def _send(self, read: ReadLine) -> LineOutcome:
        """Send one line, in a worker thread."""
        if read.error is not None:
            return LineOutcome(read=read, error=read.error)
        try:
            request = request_of(read.text)
        except Malformed as problem:
            return LineOutcome(read=read, error=str(problem))
        return self._send_request(read, request, read.text)

    def _send_request(self, read: ReadLine, request: JsonRequest, text: bytes) -> LineOutcome:
        if len(text) > JSON_BYTES_MAX and (halves := request.halves()) is not None:
            return self._send_halves(read, halves)
        response = self._client().send(request.signal, text, JSON)
        if response.is_too_large and (halves := request.halves()) is not None:
            return self._send_halves(read, halves)
        count = request.record_count
        refused = count if response.refused else response.rejected_count
        return LineOutcome(
            read=read,
            signal=request.signal,
            acknowledged=count - refused,
            refused=refused,
            error=response.refused or _partial_error(refused),
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
            error=first.error or second.error,
        )

    def _client(self) -> OtlpClient:
        """Return the connection of this worker thread."""
        client: OtlpClient | None = getattr(self._local, "client", None)
        if client is None:
            client = self._local.client = OtlpClient(
                self._target, clock=self._clock, is_known=any(self.totals.records.values())
            )
            self._clients.append(client)
        return client

    def _count(self, outcome: LineOutcome) -> None:
        totals = self.totals
        totals.lines += 1
        if outcome.error is not None:
            totals.bad_lines += 1
        if outcome.signal:
            totals.records[outcome.signal] += outcome.acknowledged
        totals.refused += outcome.refused
        totals.retries = sum(client.retry_count for client in self._clients)


def _partial_error(refused: int) -> str | None:
    return f"the node rejected {refused} of its records" if refused else None
