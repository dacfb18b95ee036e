"""Admission: which requests may enter, and which must leave, on both ports together.

`Gate` refuses a request before its body is read. It closes when too many bytes are in flight or
the log is full, and opens again only well below that, so that it does not flap: at half the bytes,
or when the log is back under its soft limit.

`PendingReads` ends requests whose body is still arriving: after ingest.body_timeout_ms, and sooner
when slow clients would keep others out.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NoReturn, Protocol

from frazil.disk import Budget
from frazil.errors import FrazilError, Overloaded, TooLarge, Unavailable
from frazil.metrics import Counter, Gauge
from frazil.model import NS_PER_MS, Clock, Rand
from frazil.settings import IngestConfig

logger = logging.getLogger(__name__)

LOW_SHARE = 0.5
"""The gate opens again when the bytes in flight fall to this share of the limit."""
RETRY_AFTER_MS = 1000
"""Shortest retry hint. A random share of up to the same again spreads the retries."""

CROWDED_SHARE = 0.4
"""Reads are crowded when pending ones take more than this share of ingest.requests_max."""
SLOW_S = 1.0
"""When reads are crowded, those pending for longer than this are evicted."""
SWEEP_S = 1.0
SWEEPS_PER_TIMEOUT = 4
"""Pending reads are checked every SWEEP_S, but at least this many times per body timeout."""

IN_FLIGHT = Gauge("frazil.ingest.in_flight.bytes", "Bytes of requests in flight.")
SERVED = Gauge("frazil.ingest.in_flight.requests", "Requests in flight.")
IS_OPEN = Gauge("frazil.ingest.gate.open", "1 while requests are admitted, 0 while refused.")
CLOSINGS = Counter("frazil.ingest.gate.closings", "Times the gate closed, by reason.")


@dataclass(frozen=True, slots=True, kw_only=True)
class AdmissionStatus:
    """What the node's status and its shutdown report about admission."""

    why_closed: str | None
    """Why requests are refused; None while they are admitted."""
    is_draining: bool
    request_count: int
    in_flight_bytes: int
    answered_count: int
    """Requests answered since the gate began to drain."""
    cut_count: int
    """Requests that ended without an answer since then."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Closure:
    """Why the gate is closed, and how to tell that this is over."""

    reason: str
    is_over: Callable[[], bool]


class Gate:
    """Counts the requests and bytes in flight on both ports. Owned by the event loop."""

    def __init__(self, config: IngestConfig, budget: Budget, clock: Clock, rand: Rand) -> None:
        self.reads = PendingReads(config)
        self._bytes_max = config.in_flight_bytes_max
        self._bytes_low = int(config.in_flight_bytes_max * LOW_SHARE)
        self._requests_max = config.requests_max
        self._budget = budget
        self._clock = clock
        self._rand = rand
        self._in_flight_bytes = 0
        self._request_count = 0
        self._is_draining = False
        self._answered_count = 0
        self._cut_count = 0
        self._closures: dict[str, _Closure] = {}
        IS_OPEN.set(1)

    def status(self) -> AdmissionStatus:
        """Return the state of the gate without changing it."""
        reasons = [c.reason for c in self._closures.values() if not c.is_over()]
        return AdmissionStatus(
            why_closed="this node is stopping" if self._is_draining else "; ".join(reasons) or None,
            is_draining=self._is_draining,
            request_count=self._request_count,
            in_flight_bytes=self._in_flight_bytes,
            answered_count=self._answered_count,
            cut_count=self._cut_count,
        )

    def enter(self) -> Reservation:
        """Admit one request before its body is read. Raises `Overloaded` or `Unavailable`."""
        self.reads.evict_slowest()
        if not self._reopen():
            self._refuse()
        if self._request_count >= self._requests_max:
            raise self._overloaded(
                f"{self._request_count} requests are being served, the limit of ingest.requests_max"
            )
        self._request_count += 1
        SERVED.set(self._request_count)
        return Reservation(self)

    def take(self, length: int) -> None:
        """Count bytes in flight. Raises `Overloaded` when they would exceed the limit."""
        if length > self._bytes_max:
            raise TooLarge(f"{length} bytes are above ingest.in_flight_bytes_max")
        if self._in_flight_bytes + length > self._bytes_max:
            reason = f"{self._in_flight_bytes} of {self._bytes_max} bytes are in flight"
            self._close("in_flight", reason, self._is_below_low)
            raise self._overloaded(reason)
        self._in_flight_bytes += length
        IN_FLIGHT.set(self._in_flight_bytes)

    def leave(self, length: int, *, is_answered: bool = True) -> None:
        """Release one request and the bytes it holds."""
        if self._is_draining:
            self._answered_count += is_answered
            self._cut_count += not is_answered
        self._in_flight_bytes -= length
        self._request_count -= 1
        assert self._in_flight_bytes >= 0
        assert self._request_count >= 0
        IN_FLIGHT.set(self._in_flight_bytes)
        SERVED.set(self._request_count)

    def note_full(self, error: Overloaded) -> None:
        """Close the gate because the log refused an append, until the log has room again."""
        retry_ns = self._clock.monotonic_ns() + error.retry_after_ms * NS_PER_MS
        self._close(
            "log",
            str(error),
            lambda: self._clock.monotonic_ns() >= retry_ns and self._budget.has_room,
        )

    def drain(self) -> None:
        """Refuse new requests for good; admitted ones are still answered."""
        self._is_draining = True
        IS_OPEN.set(0)

    def _reopen(self) -> bool:
        """Open the gate if all that closed it is over. Returns whether it is open."""
        if self._closures and all(closure.is_over() for closure in self._closures.values()):
            logger.info("gate opened", extra={"after": ", ".join(self._closures)})
            self._closures.clear()
            IS_OPEN.set(0 if self._is_draining else 1)
        return not self._closures and not self._is_draining

    def _refuse(self) -> NoReturn:
        if self._is_draining:
            raise Unavailable("this node is stopping; send to another node, or retry later")
        reasons = "; ".join(closure.reason for closure in self._closures.values())
        raise self._overloaded(f"this node accepts no requests at the moment: {reasons}")

    def _close(self, kind: str, reason: str, is_over: Callable[[], bool]) -> None:
        if kind not in self._closures:
            logger.warning("gate closed", extra={"kind": kind, "reason": reason})
            CLOSINGS.add(reason=kind)
        self._closures[kind] = _Closure(reason=reason, is_over=is_over)
        IS_OPEN.set(0)

    def _is_below_low(self) -> bool:
        return self._in_flight_bytes <= self._bytes_low

    def _overloaded(self, message: str) -> Overloaded:
        wait_ms = math.ceil(RETRY_AFTER_MS * (1 + self._rand.random()))
        return Overloaded(f"{message}; retry later", retry_after_ms=wait_ms)


class Reservation:
    """The bytes one request holds. A context manager that releases them."""

    __slots__ = ("_gate", "_held_bytes")

    def __init__(self, gate: Gate) -> None:
        self._gate = gate
        self._held_bytes = 0

    def take(self, length: int) -> None:
        """Count more bytes of this request. Raises `Overloaded` when too many are in flight."""
        self._gate.take(length)
        self._held_bytes += length

    def __enter__(self) -> Reservation:
        return self

    def __exit__(self, kind: type[BaseException] | None = None, *_: object) -> None:
        is_answered = kind is None or issubclass(kind, FrazilError)  # a refusal is an answer
        self._gate.leave(self._held_bytes, is_answered=is_answered)


class PendingRead(Protocol):
    """A request whose body is still arriving. Either method ends it; only one is called."""

    def time_out(self) -> None: ...
    def evict(self, reason: str) -> None: ...


class PendingReads:
    """The bodies still arriving on both ports, oldest first. Owned by the event loop."""

    def __init__(self, config: IngestConfig) -> None:
        self.timeout_ms = config.body_timeout_ms
        self._crowded_count = max(1, int(config.requests_max * CROWDED_SHARE))
        self._sweep_s = min(SWEEP_S, config.body_timeout_ms / 1000 / SWEEPS_PER_TIMEOUT)
        self._since_s: dict[PendingRead, float] = {}
        self._timer: asyncio.TimerHandle | None = None

    def add(self, read: PendingRead) -> None:
        loop = asyncio.get_running_loop()
        self._since_s[read] = loop.time()
        if self._timer is None:
            self._timer = loop.call_later(self._sweep_s, self._sweep)

    def remove(self, read: PendingRead) -> None:
        self._since_s.pop(read, None)

    def evict_slowest(self) -> None:
        """Make room for one more read when reads are crowded and the oldest is slow."""
        if len(self._since_s) >= self._crowded_count:
            read, since_s = next(iter(self._since_s.items()))
            if asyncio.get_running_loop().time() - since_s >= SLOW_S:
                self._evict(read)

    def _sweep(self) -> None:
        """End reads that timed out and, when reads are crowded, slow ones."""
        loop = asyncio.get_running_loop()
        now_s = loop.time()
        for read, since_s in list(self._since_s.items()):
            waited_s = now_s - since_s
            if waited_s * 1000 >= self.timeout_ms:
                del self._since_s[read]
                read.time_out()
            elif waited_s >= SLOW_S and len(self._since_s) > self._crowded_count:
                self._evict(read)
            else:
                break
        self._timer = loop.call_later(self._sweep_s, self._sweep) if self._since_s else None

    def _evict(self, read: PendingRead) -> None:
        del self._since_s[read]
        read.evict(
            f"the body arrives slowly while {len(self._since_s)} others are arriving; retry later"
        )
