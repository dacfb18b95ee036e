"""Totals: what was taken in and refused since the process began, by signal."""

from __future__ import annotations

from dataclasses import dataclass

from frazil.ingest.receiver import (
    ACCEPTED_BYTES,
    ACCEPTED_RECORDS,
    ACCEPTED_REQUESTS,
    DUPLICATE_REQUESTS,
    REFUSED_RECORDS,
    REFUSED_REQUESTS,
    TRANSPORTS,
)
from frazil.model import Signal


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


def requests_by_transport() -> dict[str, tuple[int, int]]:
    """Requests that were accepted and refused, of all signals."""
    return {
        transport: (
            int(ACCEPTED_REQUESTS.total(transport=transport)),
            int(REFUSED_REQUESTS.total(transport=transport)),
        )
        for transport in TRANSPORTS
    }


def refused_by_reason() -> dict[str, int]:
    """Requests that were refused, of all signals."""
    found: dict[str, int] = {}
    for sample in REFUSED_REQUESTS.samples():
        reason = dict(sample.labels)["reason"]
        found[reason] = found.get(reason, 0) + int(sample.value)
    return found
