"""Traffic: the shop as time passes. It is told how late it is, and gives requests to send.

1. Pods are deployed, patched and crash, as the story has it.
2. Customers come; the trip of each is worked out at once, and kept until it has ended.
3. Trips that have ended become rows and measurements.
4. Each ten seconds, all series become data points.

The same seed and the same times give the same bytes.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator

from frazil.demo.incidents import IncidentEvent, events_between, load_at, scene_at
from frazil.demo.services import CATALOGUE, Fleet, Pod
from frazil.demo.shop.background import (
    carts_given_up,
    crashed,
    each_minute,
    gauges,
    started,
    stopped,
)
from frazil.demo.shop.customers import visit
from frazil.demo.telemetry.batches import BYTES_MAX, BatchBuilder, Export
from frazil.demo.telemetry.instruments import CARTS_OPEN, InstrumentSet
from frazil.demo.telemetry.request_trace import NS_PER_S, RequestTrace
from frazil.model import NS_PER_MS, Rand

SLICE_NS = 250 * NS_PER_MS
"""Time passes in steps of this."""
COLLECT_S, MINUTE_S = 10, 60
DRAIN_S = 30
"""How long a pod that is replaced may still finish trips. None takes as long."""
SLOW_POD, SLOWNESS = 1, 6.0


class Traffic:
    """The shop. Owned by one thread."""

    def __init__(self, rand: Rand, *, start_ns: int, rate: float) -> None:
        self._rand = rand
        self._start_ns = start_ns
        self._now_ns = start_ns
        self.rate = rate
        """Customers a second, on average."""
        self._next_visit_ns = start_ns
        self._fleet = Fleet(rand, start_ns)
        self._gone: list[tuple[int, Pod]] = []
        self._measures = InstrumentSet()
        self._under_way: list[tuple[int, int, RequestTrace]] = []
        self._spans, self._logs = BatchBuilder("traces"), BatchBuilder("logs")
        self._points = BatchBuilder("metrics")
        self._carts_open = 0
        self._kept_count = 0
        self.visit_count = 0
        for pod in self._fleet.pods():
            self._logs.put(started(pod))

    @property
    def now_ns(self) -> int:
        return self._now_ns

    def advance(self, until_ns: int, *, visits_max: int | None = None) -> Iterator[Export]:
        """Let time pass, in whole slices. Requests come as soon as they are large enough."""
        while self._now_ns + SLICE_NS <= until_ns:
            end_ns = self._now_ns + SLICE_NS
            self._happen(end_ns)
            self._visit(end_ns, visits_max)
            self._finish(end_ns)
            self._now_ns = end_ns
            if (end_ns - self._start_ns) % (COLLECT_S * NS_PER_S) == 0:
                self._collect(end_ns)
            for outbox in (self._spans, self._logs, self._points):
                yield from outbox.take(at_least=BYTES_MAX)

    def flush(self) -> Iterator[Export]:
        """All that has ended so far."""
        for outbox in (self._spans, self._logs, self._points):
            yield from outbox.take()

    def skip(self, until_ns: int) -> None:
        """Nobody comes until then: whoever is behind does not try to make up for it."""
        self._next_visit_ns = max(self._next_visit_ns, until_ns)

    def visits_under_way(self) -> bool:
        """Is there a customer who waits for his page? Mails do not count: they may take long."""
        return any(not trip.is_later for _, _, trip in self._under_way)

    def end(self) -> Iterator[Export]:
        """The last requests: what has ended, and the last point of each series. What has not ended
        is as if it never was."""
        self._collect(self._now_ns)
        yield from self.flush()

    def _story_s(self, at_ns: int) -> float:
        return (at_ns - self._start_ns) / NS_PER_S

    def _happen(self, end_ns: int) -> None:
        """What the story has for pods, and what is due each minute."""
        begin_s, end_s = self._story_s(self._now_ns), self._story_s(end_ns)
        for event in events_between(begin_s, end_s):
            self._replace(event)
        is_slow = scene_at(begin_s).is_pod_slow
        self._fleet.of(CATALOGUE)[SLOW_POD].slowness = SLOWNESS if is_slow else 1.0
        if begin_s > 0 and begin_s % MINUTE_S == 0:
            rows, expired = each_minute(
                self._fleet, self._rand, self._now_ns, max(0, self._carts_open)
            )
            self._logs.put(rows)
            self._carts_open -= expired
            self._measures.add(carts_given_up(self._fleet, self._now_ns, expired))
        while self._gone and self._gone[0][0] < self._now_ns:
            self._measures.forget(self._gone.pop(0)[1])

    def _replace(self, event: IncidentEvent) -> None:
        pods = self._fleet.of(event.service)
        for pod in [pods[0]] if event.kind == "crash" else list(pods):
            major, minor, patch = pod.version
            version = {
                "deploy": (major, minor + 1, 0),
                "patch": (major, minor, patch + 1),
                "crash": pod.version,
            }[event.kind]
            ending = crashed if event.kind == "crash" else stopped
            self._logs.put(ending(pod, self._now_ns))
            self._gone.append((self._now_ns + DRAIN_S * NS_PER_S, pod))
            self._logs.put(started(self._fleet.restart(pod, version, self._now_ns)))

    def _visit(self, end_ns: int, visits_max: int | None) -> None:
        """Customers come, more or fewer of them as the day goes."""
        while self._next_visit_ns < end_ns:
            if visits_max is not None and self.visit_count >= visits_max:
                return
            at_ns = self._next_visit_ns
            story_s = self._story_s(at_ns)
            self._keep(visit(self._fleet, scene_at(story_s), self._rand, at_ns))
            self.visit_count += 1
            pause_s = self._rand.expovariate(self.rate * load_at(story_s))
            self._next_visit_ns = at_ns + int(pause_s * NS_PER_S)

    def _keep(self, trip: RequestTrace) -> None:
        # The count makes the order whole: trips themselves cannot be compared.
        self._kept_count += 1
        heapq.heappush(self._under_way, (trip.end_ns, self._kept_count, trip))
        for later in trip.later:
            self._keep(later)

    def _finish(self, end_ns: int) -> None:
        """Trips that have ended become rows and measurements."""
        while self._under_way and self._under_way[0][0] <= end_ns:
            _, _, trip = heapq.heappop(self._under_way)
            self._spans.put(trip.spans)
            self._logs.put(trip.logs)
            for measured in trip.measured:
                self._measures.add(measured)
                if measured.metric is CARTS_OPEN:
                    self._carts_open += int(measured.measurement.value)

    def _collect(self, at_ns: int) -> None:
        for measured in gauges(self._fleet, self._rand, at_ns, COLLECT_S):
            self._measures.add(measured)
        for pod, metrics, count in self._measures.collect(at_ns):
            self._points.put_one(pod, metrics, count)
