"""LogSeries: appends samples to the log, as requests of OTLP metrics."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from typing import Protocol

from frazil.errors import Unavailable
from frazil.log import Append, AppendResult, Record, append_of_records
from frazil.metrics import Counter
from frazil.model import NS_PER_MS, Clock, Signal
from frazil.rules.samples import RuleSample
from frazil.rules.store.series_labels import gauge_of

SCOPE = "frazil.rules"
"""Instrumentation scope of series of rules."""
REQUEST_SAMPLES = 2000
APPEND_WAIT_S = 10.0
"""How long an append may take."""
VISIBLE_WAIT_MS = 5000
"""How long the next rule waits for the series of one before."""
POLL_S = 0.01

STORED = Counter("frazil.rules.stored.samples", "Samples of rules that were stored.")


class AppendableLog(Protocol):
    """A log that takes batches."""

    def append(self, topic: str, append: Append) -> Future[AppendResult]: ...


class LogSeries:
    """Owned by the thread that evaluates."""

    def __init__(
        self, log: AppendableLog, watermark: Callable[[str], int], *, clock: Clock
    ) -> None:
        """`watermark` returns the offset of a topic up to which queries see records."""
        self._log = log
        self._watermark = watermark
        self._clock = clock

    def store(self, samples: Sequence[RuleSample], *, is_read_next: bool) -> None:
        """Return once the samples are durable; with `is_read_next`, once queries see them."""
        from frazil.ingest import gauge_request  # loads gRPC, which a reader without rules spares

        end_offset = 0
        for begin in range(0, len(samples), REQUEST_SAMPLES):
            part = samples[begin : begin + REQUEST_SAMPLES]
            body = gauge_request((gauge_of(sample) for sample in part), scope=SCOPE)
            now_ms = self._clock.wall_ms()
            record = Record(offset=0, timestamp_ms=now_ms, key=None, value=body)
            future = self._log.append(Signal.METRICS.topic, append_of_records([record]))
            try:
                end_offset = future.result(APPEND_WAIT_S).end_offset
            except FutureTimeout:
                raise Unavailable(f"the log did not answer within {APPEND_WAIT_S:g} s") from None
            STORED.add(len(part))
        if is_read_next:
            self._await(end_offset)

    def _await(self, end_offset: int) -> None:
        begin_ns = self._clock.monotonic_ns()
        while self._watermark(Signal.METRICS.topic) < end_offset:
            if self._clock.monotonic_ns() - begin_ns > VISIBLE_WAIT_MS * NS_PER_MS:
                raise Unavailable(
                    f"they are stored, but queries do not see them after {VISIBLE_WAIT_MS} ms; "
                    "rules that read them use older ones"
                )
            self._clock.sleep(POLL_S)
