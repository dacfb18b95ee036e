"""Demo: sends the shop's traffic to a node: first the past, then live."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from frazil.demo.telemetry.batches import Export
from frazil.demo.telemetry.request_trace import NS_PER_S
from frazil.demo.traffic import SLICE_NS, Traffic
from frazil.model import NS_PER_MS, Clock, Rand, SteadyTime
from frazil.otlp_client import OtlpClient

TICK_S = 0.5
"""Interval between sends."""
BEHIND_S_MAX = 3
"""If further behind, customers are skipped."""
BACKFILL_VISITS_MAX = 25_000
"""Enough for charts, and sent within seconds at any rate."""
BACKFILL_STEP_S = 5
"""Story time between progress reports of the backfill."""
FINISH_S = 8
"""How long to wait for the last pages, which all take less."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoPlan:
    """How much traffic, and for how long."""

    rate: float
    """Customers per second."""
    seconds: float | None = None
    count: int | None = None
    """Customers in total, backfill included. Without count and seconds, until stopped."""
    backfill_minutes: float = 0


@dataclass(slots=True, kw_only=True)
class SignalTotals:
    """Record counts of one signal."""

    sent: int = 0
    acknowledged: int = 0
    refused: int = 0


@dataclass(slots=True, kw_only=True)
class DemoSummary:
    """Totals so far."""

    visits: int = 0
    past_share: float | None = None
    """Share of the backfill that was sent; None when done."""
    totals: dict[str, SignalTotals] = field(
        default_factory=lambda: {name: SignalTotals() for name in ("traces", "logs", "metrics")}
    )
    retries: int = 0
    """Requests retried because the node asked for it or was unreachable."""
    refusal: str | None = None
    """The last reason of a rejection."""


class Demo:
    """Sends traffic until the plan is done or `stop` is called. Owned by one thread; `stop` may be
    called from any, and from a signal handler."""

    def __init__(self, plan: DemoPlan, client: OtlpClient, *, clock: Clock, rand: Rand) -> None:
        self.summary = DemoSummary()
        self._plan = plan
        self._client = client
        self._clock = clock
        self._time = SteadyTime(clock)
        self._is_stopped = False
        past_s = plan.backfill_minutes * 60
        past_rate = min(plan.rate, BACKFILL_VISITS_MAX / past_s) if past_s else plan.rate
        self._start_ns = self._now_ns() - int(past_s * NS_PER_S)
        self._traffic = Traffic(rand, start_ns=self._start_ns, rate=past_rate)

    def stop(self) -> None:
        """Stop new customers. Telemetry of finished requests is still sent."""
        self._is_stopped = True

    def run(self, report: Callable[[DemoSummary], None]) -> None:
        """Send the past, live traffic, then the rest. Raises Unavailable if the node is
        unreachable; the summary has what was acknowledged."""
        self._send_past(report)
        self._traffic.rate = self._plan.rate
        self.summary.past_share = None
        start_ns = self._now_ns()
        while not self._is_done(start_ns):
            now_ns = self._now_ns()
            self._traffic.skip(now_ns - BEHIND_S_MAX * NS_PER_S)
            self._send_until(now_ns, self._plan.count)
            report(self.summary)
            self._clock.sleep(max(0.0, TICK_S - (self._now_ns() - now_ns) / NS_PER_S))
        self._send_rest(report)

    def _send_past(self, report: Callable[[DemoSummary], None]) -> None:
        """Send as fast as possible until story time reaches now."""
        traffic = self._traffic
        while not self._is_stopped and not self._is_count_reached():
            until_ns = traffic.now_ns + BACKFILL_STEP_S * NS_PER_S
            if until_ns > self._now_ns():
                break
            self._send(traffic.advance(until_ns, visits_max=self._plan.count))
            self.summary.visits = traffic.visit_count
            passed_ns = traffic.now_ns - self._start_ns
            self.summary.past_share = passed_ns / (self._now_ns() - self._start_ns)
            report(self.summary)

    def _send_rest(self, report: Callable[[DemoSummary], None]) -> None:
        """Finish open requests without new customers. If stopped, open requests are dropped."""
        latest_ns = self._now_ns() + FINISH_S * NS_PER_S
        visit_count = self._traffic.visit_count
        while self._traffic.has_open_visits() and self._now_ns() < latest_ns:
            if self._is_stopped:
                break
            self._send_until(self._now_ns(), visit_count)
            report(self.summary)
            self._clock.sleep(TICK_S)
        self._send(self._traffic.end())

    def _send_until(self, now_ns: int, visits_max: int | None) -> None:
        """Send what was emitted until then, a second at a time, so that `stop` works."""
        traffic = self._traffic
        while traffic.now_ns + SLICE_NS <= now_ns and not self._is_stopped:
            until_ns = min(now_ns, traffic.now_ns + NS_PER_S)
            self._send(traffic.advance(until_ns, visits_max=visits_max))
            self.summary.visits = traffic.visit_count
        self._send(traffic.flush())

    def _send(self, exports: Iterable[Export]) -> None:
        for export in exports:
            total = self.summary.totals[export.signal]
            total.sent += export.record_count
            response = self._client.send(export.signal, export.body)
            refused = export.record_count if response.refused else response.rejected_count
            total.refused += refused
            total.acknowledged += export.record_count - refused
            self.summary.refusal = response.refused or self.summary.refusal
            self.summary.retries = self._client.retry_count

    def _is_done(self, start_ns: int) -> bool:
        seconds = self._plan.seconds
        is_over = seconds is not None and self._now_ns() - start_ns >= seconds * NS_PER_S
        return self._is_stopped or is_over or self._is_count_reached()

    def _is_count_reached(self) -> bool:
        return self._plan.count is not None and self._traffic.visit_count >= self._plan.count

    def _now_ns(self) -> int:
        return self._time.now_ms() * NS_PER_MS
