"""The timeline of incidents since the start. It repeats.

 3:00  checkout is deployed with a bug             4:30  the fix is deployed
 5:00  the payment provider is slow                6:30  it recovers
 7:00  the mail server is down: the queue grows    7:40  it is back
 8:00  catalogue is deployed: its caches are cold  8:30  they are warm
 9:00  one pod of catalogue is slow                10:00 it recovers
11:00  a pod of recommendation runs out of memory
12:00  start over
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from frazil.demo.services import CATALOGUE, CHECKOUT, RECOMMENDATION, ShopService

CYCLE_S = 720
PAYMENT_SLOW_S = (300, 390)
MAIL_AWAY_S = (420, 460)
CACHE_COLD_S = (480, 510)
POD_SLOW_S = (540, 600)
FAULT_S = (180, 270)
WAVE_S, RIPPLE_S = 360.0, 47.0
"""Periods of the load."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IncidentEvent:
    """Something that happens to the pods of a service."""

    at_s: int
    service: ShopService
    kind: Literal["deploy", "patch", "crash"]


EVENTS = (
    IncidentEvent(at_s=180, service=CHECKOUT, kind="deploy"),
    IncidentEvent(at_s=270, service=CHECKOUT, kind="patch"),
    IncidentEvent(at_s=480, service=CATALOGUE, kind="deploy"),
    IncidentEvent(at_s=660, service=RECOMMENDATION, kind="crash"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ShopState:
    """The incidents at one moment."""

    is_checkout_faulty: bool
    is_payment_slow: bool
    mail_away_s: float
    """Seconds until the mail server is back."""
    is_cache_cold: bool
    is_pod_slow: bool


def state_at(story_s: float) -> ShopState:
    """Return the incidents at a time of the story."""
    at_s = story_s % CYCLE_S
    return ShopState(
        is_checkout_faulty=_is_within(at_s, FAULT_S),
        is_payment_slow=_is_within(at_s, PAYMENT_SLOW_S),
        mail_away_s=MAIL_AWAY_S[1] - at_s if _is_within(at_s, MAIL_AWAY_S) else 0.0,
        is_cache_cold=_is_within(at_s, CACHE_COLD_S),
        is_pod_slow=_is_within(at_s, POD_SLOW_S),
    )


def load_at(story_s: float) -> float:
    """Return the load at a time of the story; 1 is the average."""
    wave = 0.4 * math.sin(2 * math.pi * story_s / WAVE_S)
    return 1 + wave + 0.12 * math.sin(2 * math.pi * story_s / RIPPLE_S)


def events_between(begin_s: float, end_s: float) -> list[IncidentEvent]:
    """Return the events in [begin_s, end_s), which must be shorter than a cycle."""
    base_s = begin_s // CYCLE_S * CYCLE_S
    return [
        event
        for base in (base_s, base_s + CYCLE_S)
        for event in EVENTS
        if begin_s <= base + event.at_s < end_s
    ]


def _is_within(at_s: float, span_s: tuple[int, int]) -> bool:
    return span_s[0] <= at_s < span_s[1]
