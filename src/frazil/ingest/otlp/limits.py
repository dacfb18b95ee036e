"""RecordLimits: cuts or rejects what exceeds the limits on attributes and log bodies.

Most requests have no message that is long enough to exceed a limit; the scanner says so in passing,
and nothing here runs. A data point is never cut: without an attribute it would be another series.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from frazil.ingest.otlp.limit_walk import ATTRIBUTE_BYTES_MIN, exceeding, trim
from frazil.ingest.otlp.scan import NEVER_LARGE, NO_STARTS, TABLES, scan, without_records
from frazil.ingest.otlp.scan_walk import (
    BODY_LIMIT,
    COUNT_LIMIT,
    KEY_LIMIT,
    VALUE_LIMIT,
    Positions,
)
from frazil.model import Signal
from frazil.settings import LimitsConfig

SETTINGS = {
    COUNT_LIMIT: "attributes_max",
    KEY_LIMIT: "key_bytes_max",
    VALUE_LIMIT: "value_bytes_max",
    BODY_LIMIT: "log_body_bytes_max",
}
CUT = {
    COUNT_LIMIT: "attributes dropped",
    KEY_LIMIT: "keys cut",
    VALUE_LIMIT: "values cut",
    BODY_LIMIT: "parts of bodies cut",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Limited:
    """A request within the limits."""

    body: bytes
    record_count: int
    rejected_count: int
    cut: dict[str, int]
    """Setting -> what was cut to obey it."""
    message: str
    """What happened, for the client; empty if nothing did."""


class RecordLimits:
    """The limits of one node. Immutable; any thread may use it."""

    def __init__(self, config: LimitsConfig) -> None:
        self._config = config
        self._is_strict = config.when_exceeded == "reject"
        self._limits: Positions = np.full(5, NEVER_LARGE, np.int64)
        for limit, name in SETTINGS.items():
            if getattr(config, name):
                self._limits[limit] = getattr(config, name)
        texts = int(self._limits[[KEY_LIMIT, VALUE_LIMIT, BODY_LIMIT]].min())
        self.large = min(texts, ATTRIBUTE_BYTES_MIN * int(self._limits[COUNT_LIMIT]))
        """Requests without a message longer than this, records apart, are within the limits."""

    def enforce(self, signal: Signal, body: bytes, record_count: int) -> Limited:
        """Return a valid request within the limits."""
        messages = []
        kept_count = record_count
        if self._is_strict or signal is Signal.METRICS:
            body, limit = self._reject(signal, body)
            if limit:
                kept_count = scan(signal, body).record_count
                messages.append(self._rejected(record_count - kept_count, limit))
        cut: dict[str, int] = {}
        if not self._is_strict:
            body, counts = self._trim(signal, body)
            cut = {name: int(counts[limit]) for limit, name in SETTINGS.items() if counts[limit]}
            messages += [
                f"{counts[limit]} {CUT[limit]} by {self._name(limit)}"
                for limit in SETTINGS
                if counts[limit]
            ]
        return Limited(
            body=body,
            record_count=kept_count,
            rejected_count=record_count - kept_count,
            cut=cut,
            message="; ".join(messages),
        )

    def _reject(self, signal: Signal, body: bytes) -> tuple[bytes, int]:
        """Return the request without the records that exceed a limit, and the first limit; 0 if
        there are none."""
        table, source = TABLES[signal], np.frombuffer(body, np.uint8)
        arguments = (source, table.entries, table.tag_bits, self._limits, self._is_strict)
        count, limit = exceeding(*arguments, NO_STARTS)
        if not count:
            return body, 0
        starts = np.empty(count, np.int64)
        exceeding(*arguments, starts)
        return without_records(signal, body, starts), limit

    def _trim(self, signal: Signal, body: bytes) -> tuple[bytes, Positions]:
        table, source = TABLES[signal], np.frombuffer(body, np.uint8)
        output, counts = np.empty(len(body), np.uint8), np.zeros(5, np.int64)
        written = trim(source, table.entries, table.tag_bits, self._limits, output, counts)
        return (output[:written].tobytes(), counts) if counts.any() else (body, counts)

    def _rejected(self, count: int, limit: int) -> str:
        return f"{count} records exceed a limit, the first one {self._name(limit)}"

    def _name(self, limit: int) -> str:
        name = SETTINGS[limit]
        return f"ingest.limits.{name} ({getattr(self._config, name)})"
