"""Traffic: simulates the shop over time and yields export requests.

1. Pods are deployed, patched and crash, as in the timeline of incidents.
2. Customers arrive; each request trace is computed at once and kept until its end time.
3. Finished traces become rows and measurements.
4. Every ten seconds, all series become data points.

The same seed and times give the same bytes.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator

from frazil.demo.incidents import IncidentEvent, events_between, load_at, state_at
from frazil.demo.services import CATALOGUE, Fleet, Pod
from frazil.demo.shop import background
from frazil.demo.shop.customers import visit
from frazil.demo.telemetry.batches import BYTES_MAX, BatchBuilder, Export
from frazil.demo.telemetry.instruments import CARTS_OPEN, InstrumentSet
from frazil.demo.telemetry.request_trace import NS_PER_S, RequestTrace
from frazil.model import NS_PER_MS, Rand

SLICE_NS = 250 * NS_PER_MS
"""The time step."""
COLLECT_S, MINUTE_S = 10, 60
DRAIN_S = 30
"""How long a replaced pod may finish requests, which all take less."""
SLOW_POD, SLOWNESS = 1, 6.0


class Traffic:
    """The simulated shop. Owned by one thread."""

    def __init__(self, rand: Rand, *, start_ns: int, rate: float) -> None:
        self._rand = rand
        self._start_ns = start_ns
        self._now_ns = start_ns
        self.rate = rate
        """Customers per second, on average."""
        self._next_visit_ns = start_ns
        self._fleet = Fleet(rand, start_ns)
        self._replaced: list[tuple[int, Pod]] = []
        self._instruments = InstrumentSet()
        self._open: list[tuple[int, int, RequestTrace]] = []
        self._spans, self._logs = BatchBuilder("traces"), BatchBuilder("logs")
        self._points = BatchBuilder("metrics")
        self._carts_open = 0
        self._pushed_count = 0
        self.visit_count = 0
        for pod in self._fleet.pods():
            self._logs.put(background.started(pod))

    @property
    def now_ns(self) -> int:
        return self._now_ns

    def advance(self, until_ns: int, *, visits_max: int | None = None) -> Iterator[Export]:
        """Advance time in whole steps; yields requests that are large enough."""
        while self._now_ns + SLICE_NS <= until_ns:
            end_ns = self._now_ns + SLICE_NS
            self._apply_incidents(end_ns)
            self._visit(end_ns, visits_max)
            self._finish(end_ns)
            self._now_ns = end_ns
            if (end_ns - self._start_ns) % (COLLECT_S * NS_PER_S) == 0:
                self._collect(end_ns)
            for batch in (self._spans, self._logs, self._points):
                yield from batch.take(at_least=BYTES_MAX)

    def flush(self) -> Iterator[Export]:
        """Yield requests with everything finished so far."""
        for batch in (self._spans, self._logs, self._points):
            yield from batch.take()

    def skip(self, until_ns: int) -> None:
        """Skip customers until then, instead of catching up."""
        self._next_visit_ns = max(self._next_visit_ns, until_ns)

    def has_open_visits(self) -> bool:
        """Return whether a customer waits for a page. Mails do not count: they may take long."""
        return any(not trace.is_follow_up for _, _, trace in self._open)

    def end(self) -> Iterator[Export]:
        """Yield the last requests: everything finished, and the last point of each series. Open
        traces are dropped."""
        self._collect(self._now_ns)
        yield from self.flush()

    def _story_s(self, at_ns: int) -> float:
        return (at_ns - self._start_ns) / NS_PER_S

    def _apply_incidents(self, end_ns: int) -> None:
        """Apply incidents, and run the jobs of each minute."""
        begin_s, end_s = self._story_s(self._now_ns), self._story_s(end_ns)
        for event in events_between(begin_s, end_s):
            self._replace(event)
        is_slow = state_at(begin_s).is_pod_slow
        self._fleet.of(CATALOGUE)[SLOW_POD].slowness = SLOWNESS if is_slow else 1.0
        if begin_s > 0 and begin_s % MINUTE_S == 0:
            rows, expired = background.each_minute(
                self._fleet, self._rand, self._now_ns, max(0, self._carts_open)
            )
            self._logs.put(rows)
            self._carts_open -= expired
            expired_carts = background.carts_given_up(self._fleet, self._now_ns, expired)
            self._instruments.add(expired_carts)
        while self._replaced and self._replaced[0][0] < self._now_ns:
            self._instruments.forget(self._replaced.pop(0)[1])

    def _replace(self, event: IncidentEvent) -> None:
        pods = self._fleet.of(event.service)
        for pod in [pods[0]] if event.kind == "crash" else list(pods):
            major, minor, patch = pod.version
            version = {
                "deploy": (major, minor + 1, 0),
                "patch": (major, minor, patch + 1),
                "crash": pod.version,
            }[event.kind]
            final_logs = background.crashed if event.kind == "crash" else background.stopped
            self._logs.put(final_logs(pod, self._now_ns))
            self._replaced.append((self._now_ns + DRAIN_S * NS_PER_S, pod))
            replacement = self._fleet.restart(pod, version, self._now_ns)
            self._logs.put(background.started(replacement))

    def _visit(self, end_ns: int, visits_max: int | None) -> None:
        """Let customers arrive, at a rate that follows the load."""
        while self._next_visit_ns < end_ns:
            if visits_max is not None and self.visit_count >= visits_max:
                return
            at_ns = self._next_visit_ns
            story_s = self._story_s(at_ns)
            self._push(visit(self._fleet, state_at(story_s), self._rand, at_ns))
            self.visit_count += 1
            pause_s = self._rand.expovariate(self.rate * load_at(story_s))
            self._next_visit_ns = at_ns + int(pause_s * NS_PER_S)

    def _push(self, trace: RequestTrace) -> None:
        # The count breaks ties: traces cannot be compared.
        self._pushed_count += 1
        heapq.heappush(self._open, (trace.end_ns, self._pushed_count, trace))
        for follow_up in trace.follow_ups:
            self._push(follow_up)

    def _finish(self, end_ns: int) -> None:
        """Turn finished traces into rows and measurements."""
        while self._open and self._open[0][0] <= end_ns:
            _, _, trace = heapq.heappop(self._open)
            self._spans.put(trace.spans)
            self._logs.put(trace.logs)
            for measured in trace.measured:
                self._instruments.add(measured)
                if measured.metric is CARTS_OPEN:
                    self._carts_open += int(measured.measurement.value)

    def _collect(self, at_ns: int) -> None:
        for measured in background.gauges(self._fleet, self._rand, at_ns, COLLECT_S):
            self._instruments.add(measured)
        for pod, metrics, count in self._instruments.collect(at_ns):
            self._points.put_one(pod, metrics, count)
