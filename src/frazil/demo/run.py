"""Demo: send the shop's traffic to a node: first the past, then as time passes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from frazil.demo.telemetry.batches import Export
from frazil.demo.telemetry.request_trace import NS_PER_S
from frazil.demo.traffic import SLICE_NS, Traffic
from frazil.model import NS_PER_MS, Clock, Rand, SteadyTime
from frazil.otlp_client import OtlpClient

TICK_S = 0.5
"""How often there is something to send."""
BEHIND_S_MAX = 3
"""Whoever is further behind gives up what is missing."""
BACKFILL_VISITS_MAX = 25_000
"""Of the past: enough for pictures, and sent in some seconds at any rate."""
BACKFILL_STEP_S = 5
"""Between two looks at how far it has come."""
FINISH_S = 8
"""How long to wait for the last pages. All take less."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoPlan:
    """How much traffic, and for how long."""

    rate: float
    """Customers a second."""
    seconds: float | None = None
    count: int | None = None
    """Of customers, those of the past included. Without either, until it is stopped."""
    backfill_minutes: float = 0


@dataclass(slots=True, kw_only=True)
class SignalTotals:
    """What became of the records of one signal."""

    sent: int = 0
    acknowledged: int = 0
    refused: int = 0


@dataclass(slots=True, kw_only=True)
class DemoSummary:
    """What became of everything so far."""

    visits: int = 0
    past_share: float | None = None
    """How much of the past was sent; None when that is done."""
    tallies: dict[str, SignalTotals] = field(
        default_factory=lambda: {name: SignalTotals() for name in ("traces", "logs", "metrics")}
    )
    retries: int = 0
    """Requests that were sent again, because the node asked for that or was away."""
    refusal: str | None = None
    """The last reason why something was refused."""


class Demo:
    """Sends what the shop says, until its plan is done or somebody stops it. Owned by one thread;
    `stop` may come from any, and from a signal."""

    def __init__(self, plan: DemoPlan, sender: OtlpClient, *, clock: Clock, rand: Rand) -> None:
        self.summary = DemoSummary()
        self._plan = plan
        self._sender = sender
        self._clock = clock
        self._time = SteadyTime(clock)
        self._is_stopped = False
        past_s = plan.backfill_minutes * 60
        past_rate = min(plan.rate, BACKFILL_VISITS_MAX / past_s) if past_s else plan.rate
        self._start_ns = self._now_ns() - int(past_s * NS_PER_S)
        self._traffic = Traffic(rand, start_ns=self._start_ns, rate=past_rate)

    def stop(self) -> None:
        """No more customers. What was said so far is still sent."""
        self._is_stopped = True

    def run(self, tell: Callable[[DemoSummary], None]) -> None:
        """Send the past, then the present as it comes, then what is left. `Unavailable` when the
        node is not there; the summary says what it had acknowledged."""
        self._send_past(tell)
        self._traffic.rate = self._plan.rate
        self.summary.past_share = None
        begun_ns = self._now_ns()
        while not self._is_done(begun_ns):
            now_ns = self._now_ns()
            self._traffic.skip(now_ns - BEHIND_S_MAX * NS_PER_S)
            self._send_until(now_ns, self._plan.count)
            tell(self.summary)
            self._clock.sleep(max(0.0, TICK_S - (self._now_ns() - now_ns) / NS_PER_S))
        self._send_rest(tell)

    def _send_past(self, tell: Callable[[DemoSummary], None]) -> None:
        """As fast as it goes, until it is as late as it is."""
        traffic = self._traffic
        while not self._is_stopped and not self._is_counted():
            until_ns = traffic.now_ns + BACKFILL_STEP_S * NS_PER_S
            if until_ns > self._now_ns():
                break
            self._send(traffic.advance(until_ns, visits_max=self._plan.count))
            self.summary.visits = traffic.visit_count
            passed_ns = traffic.now_ns - self._start_ns
            self.summary.past_share = passed_ns / (self._now_ns() - self._start_ns)
            tell(self.summary)

    def _send_rest(self, tell: Callable[[DemoSummary], None]) -> None:
        """Nobody comes any more. Those who wait for a page still get it, unless we have to stop:
        then it is as if they never came."""
        latest_ns = self._now_ns() + FINISH_S * NS_PER_S
        visit_count = self._traffic.visit_count
        while self._traffic.visits_under_way() and self._now_ns() < latest_ns:
            if self._is_stopped:
                break
            self._send_until(self._now_ns(), visit_count)
            tell(self.summary)
            self._clock.sleep(TICK_S)
        self._send(self._traffic.end())

    def _send_until(self, now_ns: int, visits_max: int | None) -> None:
        """What was said until then. A second at a time: somebody may say stop."""
        traffic = self._traffic
        while traffic.now_ns + SLICE_NS <= now_ns and not self._is_stopped:
            until_ns = min(now_ns, traffic.now_ns + NS_PER_S)
            self._send(traffic.advance(until_ns, visits_max=visits_max))
            self.summary.visits = traffic.visit_count
        self._send(traffic.flush())

    def _send(self, exports: Iterable[Export]) -> None:
        for export in exports:
            tally = self.summary.tallies[export.signal]
            tally.sent += export.record_count
            answer = self._sender.send(export.signal, export.body)
            refused = export.record_count if answer.refused else answer.rejected_count
            tally.refused += refused
            tally.acknowledged += export.record_count - refused
            self.summary.refusal = answer.refused or self.summary.refusal
            self.summary.retries = self._sender.retry_count

    def _is_done(self, begun_ns: int) -> bool:
        seconds = self._plan.seconds
        is_late = seconds is not None and self._now_ns() - begun_ns >= seconds * NS_PER_S
        return self._is_stopped or is_late or self._is_counted()

    def _is_counted(self) -> bool:
        return self._plan.count is not None and self._traffic.visit_count >= self._plan.count

    def _now_ns(self) -> int:
        return self._time.now_ms() * NS_PER_MS
