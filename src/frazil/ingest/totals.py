"""Totals: requests and records accepted and refused since the process started."""

from __future__ import annotations

from dataclasses import dataclass

from frazil.ingest.receiver import (
    ACCEPTED_BYTES,
    ACCEPTED_RECORDS,
    ACCEPTED_REQUESTS,
    DUPLICATE_REQUESTS,
    REFUSED_REQUESTS,
)
from frazil.ingest.request_check import (
    REDACTED_VALUES,
    REFUSED_RECORDS,
    TRANSPORTS,
    TRUNCATED_VALUES,
)
from frazil.metrics import Counter
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
    """Return the counts of a signal over all transports."""
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
    """Return accepted and refused requests of all signals, of each OTLP port."""
    return {
        transport: (
            int(ACCEPTED_REQUESTS.total(transport=transport)),
            int(REFUSED_REQUESTS.total(transport=transport)),
        )
        for transport in TRANSPORTS
    }


def refused_by_reason() -> dict[str, int]:
    """Return refused requests of all signals."""
    return _by_label(REFUSED_REQUESTS, "reason")


def rejected_by_reason() -> dict[str, int]:
    """Return records rejected from accepted requests, of all signals."""
    return _by_label(REFUSED_RECORDS, "reason")


def truncated_by_limit() -> dict[str, int]:
    """Return what was cut, of all signals, by the setting that limits it."""
    return _by_label(TRUNCATED_VALUES, "limit")


def redacted_by_action() -> dict[str, int]:
    """Return what redaction rules replaced, of all signals."""
    return _by_label(REDACTED_VALUES, "action")


def _by_label(counter: Counter, label: str) -> dict[str, int]:
    counts: dict[str, int] = {}
    for sample in counter.samples():
        value = dict(sample.labels)[label]
        counts[value] = counts.get(value, 0) + int(sample.value)
    return counts
