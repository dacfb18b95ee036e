"""Totals: requests and records accepted and refused since the process started."""

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
    """Counts of one signal; they only rise."""

    accepted_requests: int
    accepted_records: int
    accepted_bytes: int
    duplicate_requests: int
    refused_requests: int
    refused_records: int
    """Rejected from requests whose other records were accepted."""


def totals_of(signal: Signal) -> Totals:
    """Return the counts of a signal over both transports."""
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
    """Return accepted and refused requests of all signals."""
    return {
        transport: (
            int(ACCEPTED_REQUESTS.total(transport=transport)),
            int(REFUSED_REQUESTS.total(transport=transport)),
        )
        for transport in TRANSPORTS
    }


def refused_by_reason() -> dict[str, int]:
    """Return refused requests of all signals."""
    counts: dict[str, int] = {}
    for sample in REFUSED_REQUESTS.samples():
        reason = dict(sample.labels)["reason"]
        counts[reason] = counts.get(reason, 0) + int(sample.value)
    return counts
