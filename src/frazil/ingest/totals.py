"""Totals: what was taken in and refused since the process began, by signal."""

from __future__ import annotations

from dataclasses import dataclass

from frazil.ingest.receive import (
    ACCEPTED_BYTES,
    ACCEPTED_RECORDS,
    ACCEPTED_REQUESTS,
    DUPLICATE_REQUESTS,
    REFUSED_RECORDS,
    REFUSED_REQUESTS,
)
from frazil.ingest.signals import Signal


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """Numbers that only rise."""

    accepted_requests: int
    accepted_records: int
    accepted_bytes: int
    duplicate_requests: int
    refused_requests: int
    refused_records: int
    """Taken out of requests of which the rest was accepted."""


def totals_of(signal: Signal) -> Totals:
    """Over both transports."""
    name = signal.value
    return Totals(
        accepted_requests=int(ACCEPTED_REQUESTS.total(signal=name)),
        accepted_records=int(ACCEPTED_RECORDS.total(signal=name)),
        accepted_bytes=int(ACCEPTED_BYTES.total(signal=name)),
        duplicate_requests=int(DUPLICATE_REQUESTS.total(signal=name)),
        refused_requests=int(REFUSED_REQUESTS.total(signal=name)),
        refused_records=int(REFUSED_RECORDS.total(signal=name)),
    )
