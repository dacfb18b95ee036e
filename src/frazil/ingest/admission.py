"""Gate: who may enter now. Full means a polite no, before anything is read or stored.

The gate closes when too many bytes are in hand, or when the log has no room. It opens again only
when things are well below that, so that it does not flutter: at half the bytes, or when the log
is back under the mark at which it begins to make room.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from dataclasses import dataclass

from frazil.disk import Budget
from frazil.errors import FrazilError, Overloaded, TooLarge, Unavailable
from frazil.ingest.config import IngestConfig
from frazil.metrics import Counter, Gauge
from frazil.model import NS_PER_MS, Clock, Rand

logger = logging.getLogger(__name__)

LOW_SHARE = 0.5
"""Bytes in hand fall to this share of the limit before the gate opens again."""
RETRY_AFTER_MS = 1000
"""When to come back, at least; up to twice that, so that not all come at the same moment."""

IN_FLIGHT = Gauge("frazil.ingest.in_flight.bytes", "Bytes of requests that are not answered yet.")
SERVED = Gauge("frazil.ingest.in_flight.requests", "Requests that are not answered yet.")
IS_OPEN = Gauge("frazil.ingest.gate.open", "1 while requests may enter, 0 while they may not.")
CLOSINGS = Counter("frazil.ingest.gate.closings", "Times the gate closed, by reason.")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Closure:
    """Why the gate is closed, and how to tell that this is over."""

    reason: str
    is_over: Callable[[], bool]


class Gate:
    """Counts what is in hand on both ports. Belongs to the event loop."""

    def __init__(self, config: IngestConfig, budget: Budget, clock: Clock, rand: Rand) -> None:
        self._bytes_max = config.in_flight_bytes_max
        self._bytes_low = int(config.in_flight_bytes_max * LOW_SHARE)
        self._requests_max = config.requests_max
        self._budget = budget
        self._clock = clock
        self._rand = rand
        self._in_flight_bytes = 0
        self._request_count = 0
        self._is_draining = False
        self.answered_count = 0
        """Requests that were inside when the gate was drained, and got their answer."""
        self.cut_count = 0
        """Those that got none: they were cut off, or gone."""
        self._closures: dict[str, _Closure] = {}
        IS_OPEN.set(1)

    @property
    def is_open(self) -> bool:
        """May somebody enter? Opens the gate when what closed it is over."""
        if self._closures and all(closure.is_over() for closure in self._closures.values()):
            logger.info("gate opened", extra={"after": ", ".join(self._closures)})
            self._closures.clear()
            IS_OPEN.set(0 if self._is_draining else 1)
        return not self._closures and not self._is_draining

    @property
    def why_closed(self) -> str | None:
        """Why nobody may enter, in words; None when somebody may. Looks, and changes nothing."""
        if self._is_draining:
            return "this node is stopping"
        reasons = [c.reason for c in self._closures.values() if not c.is_over()]
        return "; ".join(reasons) or None

    @property
    def is_draining(self) -> bool:
        return self._is_draining

    @property
    def request_count(self) -> int:
        return self._request_count

    @property
    def in_flight_bytes(self) -> int:
        return self._in_flight_bytes

    def enter(self) -> Reservation:
        """Let one request in, before its body is read. `Overloaded` or `Unavailable` if not."""
        if not self.is_open:
            self.refuse()
        if self._request_count >= self._requests_max:
            raise self._overloaded(
                f"{self._request_count} requests are being served, which is ingest.requests_max"
            )
        self._request_count += 1
        SERVED.set(self._request_count)
        return Reservation(self)

    def refuse(self) -> None:
        """Raise what whoever stands before the closed gate is told."""
        if self._is_draining:
            raise Unavailable("this node is stopping; send to another, or wait until it is back")
        reasons = "; ".join(closure.reason for closure in self._closures.values())
        raise self._overloaded(f"this node takes nothing in at the moment: {reasons}")

    def take(self, length: int) -> None:
        """Count bytes in hand. Those that would go over the limit are refused."""
        if length > self._bytes_max:
            raise TooLarge(f"{length} bytes are above ingest.in_flight_bytes_max")
        if self._in_flight_bytes + length > self._bytes_max:
            reason = f"{self._in_flight_bytes} bytes are in hand of {self._bytes_max}"
            self._close("in_flight", reason, self._is_below_low)
            raise self._overloaded(reason)
        self._in_flight_bytes += length
        IN_FLIGHT.set(self._in_flight_bytes)

    def leave(self, length: int, *, is_answered: bool = True) -> None:
        if self._is_draining:
            self.answered_count += is_answered
            self.cut_count += not is_answered
        self._in_flight_bytes -= length
        self._request_count -= 1
        assert self._in_flight_bytes >= 0
        assert self._request_count >= 0
        IN_FLIGHT.set(self._in_flight_bytes)
        SERVED.set(self._request_count)

    def note_full(self, error: Overloaded) -> None:
        """The log has refused: nobody enters until it has made room."""
        again_ns = self._clock.monotonic_ns() + error.retry_after_ms * NS_PER_MS
        self._close(
            "log",
            str(error),
            lambda: (
                self._clock.monotonic_ns() >= again_ns
                and self._budget.used_bytes <= self._budget.soft_bytes_max
            ),
        )

    def drain(self) -> None:
        """Let nobody in any more; those inside are still answered."""
        self._is_draining = True
        IS_OPEN.set(0)

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
        return Overloaded(f"{message}; send again later", retry_after_ms=wait_ms)


class Reservation:
    """What one request holds of the gate's bytes. Given back when it is answered."""

    __slots__ = ("_gate", "_held_bytes")

    def __init__(self, gate: Gate) -> None:
        self._gate = gate
        self._held_bytes = 0

    def take(self, length: int) -> None:
        """Count more bytes of this request. `Overloaded` when there are too many in all."""
        self._gate.take(length)
        self._held_bytes += length

    def __enter__(self) -> Reservation:
        return self

    def __exit__(self, kind: type[BaseException] | None = None, *_: object) -> None:
        """A refusal is an answer, too."""
        is_answered = kind is None or issubclass(kind, FrazilError)
        self._gate.leave(self._held_bytes, is_answered=is_answered)
