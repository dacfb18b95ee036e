"""RequestCheck: what happens to every request before it is stored, whichever port it came through.

1. scan: every byte is checked; a request that does not parse stores nothing (`Malformed`).
2. prune: records that can never be stored are removed.
3. redact: the rules are applied; nothing after this step has seen what they removed.
4. digest: the same bytes within the window are the same request.
5. limits: what exceeds them is cut or rejected. The digest is taken before, so that a retry is
   recognized even if limits or known series have changed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from blake3 import blake3

from frazil.errors import TooLarge
from frazil.ingest.otlp.limits import RecordLimits
from frazil.ingest.otlp.redact import Redactor
from frazil.ingest.otlp.scan import ScanResult, prune, scan
from frazil.ingest.series import SeriesLimit
from frazil.log import DIGEST_BYTES
from frazil.metrics import Counter
from frazil.model import Clock, Signal
from frazil.settings import IngestConfig

Transport = Literal["grpc", "http", "kafka", "load"]
TRANSPORTS: tuple[Transport, ...] = ("grpc", "http")
"""Those of the OTLP ports. Requests through the Kafka port are counted as `kafka`; those made of
files in tasks, which have no metrics, are not counted."""

REFUSED_RECORDS = Counter(
    "frazil.ingest.refused.records", "Records rejected from accepted requests."
)
TRUNCATED_VALUES = Counter(
    "frazil.ingest.truncated.values", "Attributes, keys, values and bodies cut, by limit."
)
REDACTED_VALUES = Counter(
    "frazil.ingest.redacted.values", "Values and matches replaced by redaction rules, by action."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedRequest:
    """A request as it may be stored."""

    body: bytes
    record_count: int
    """Without the rejected ones."""
    rejected_count: int
    message: str
    """What was rejected or cut, for the client; empty if nothing was."""
    digest: bytes | None = None


class RequestCheck:
    """The rules of one node. Any thread may use it; only the known series change."""

    def __init__(self, config: IngestConfig, clock: Clock, redactor: Redactor | None) -> None:
        self._config = config
        self._redactor = redactor
        self._limits = RecordLimits(config.limits)
        series_max = config.limits.series_per_service_max
        self.series = SeriesLimit(series_max, clock) if series_max else None

    def scan(self, signal: Signal, body: bytes) -> ScanResult:
        """Validate every byte. Raises `Malformed`."""
        return scan(signal, body, self._limits.large)

    def is_plain(self, signal: Signal, scanned: ScanResult) -> bool:
        """Return whether a request is stored as it is: `apply` takes no time then."""
        has_series = self.series is not None and signal is Signal.METRICS
        is_long = scanned.rejected_count or scanned.has_large or has_series
        return self._redactor is None and not is_long

    def apply(
        self,
        signal: Signal,
        transport: Transport,
        body: bytes,
        scanned: ScanResult,
        *,
        keeps_unstorable: bool = False,
    ) -> CheckedRequest:
        """Return what may be stored of a scanned request. Raises `TooLarge` if redaction makes it
        too long.

        `keeps_unstorable` leaves records in that can never be rows: readers make dead letters of
        them, for senders that cannot be told of a partial success.
        """
        if scanned.rejected_count and not keeps_unstorable:
            count_rejected(signal, transport, scanned.rejected_count, "rejected")
            body = prune(signal, body)
        has_large = scanned.has_large
        if self._redactor is not None and scanned.record_count + scanned.rejected_count:
            body = self._redact(signal, body, self._redactor)
            # A hash may be longer than what it replaced.
            has_large = self.scan(signal, body).has_large
        checked = CheckedRequest(
            body=body,
            record_count=scanned.record_count,
            rejected_count=scanned.rejected_count,
            message=scanned.reason,
            digest=blake3(body).digest(DIGEST_BYTES) if self._config.deduplicate else None,
        )
        if has_large:
            checked = self._limit(signal, transport, checked)
        if self.series is not None and signal is Signal.METRICS and checked.record_count:
            checked = self._limit_series(transport, checked, self.series)
        return checked

    def check_length(self, body: bytes, when: str = "") -> None:
        """Raise `TooLarge` if a body is above ingest.body_bytes_max."""
        if len(body) > self._config.body_bytes_max:
            raise TooLarge(
                f"the body has {len(body)} bytes{when}, which exceeds "
                f"ingest.body_bytes_max ({self._config.body_bytes_max}); send smaller batches"
            )

    def _redact(self, signal: Signal, body: bytes, redactor: Redactor) -> bytes:
        """Return the body with all redaction rules applied. It may be longer: hashes are."""
        redacted = redactor.redact(signal, body)
        for action, count in redacted.counts.items():
            REDACTED_VALUES.add(count, signal=signal.value, action=action)
        self.check_length(redacted.body, " after redaction")
        return redacted.body

    def _limit(
        self, signal: Signal, transport: Transport, checked: CheckedRequest
    ) -> CheckedRequest:
        limited = self._limits.enforce(signal, checked.body, checked.record_count)
        for name, count in limited.cut.items():
            TRUNCATED_VALUES.add(count, signal=signal.value, limit=name)
        if limited.rejected_count:
            count_rejected(signal, transport, limited.rejected_count, "limits")
        return _less(checked, limited.body, limited.rejected_count, limited.message)

    def _limit_series(
        self, transport: Transport, checked: CheckedRequest, series: SeriesLimit
    ) -> CheckedRequest:
        result = series.enforce(checked.body)
        if result.rejected_count:
            count_rejected(Signal.METRICS, transport, result.rejected_count, "series")
        return _less(checked, result.body, result.rejected_count, result.message)


def count_rejected(signal: Signal, transport: Transport, count: int, reason: str) -> None:
    """Count records rejected from a request whose others are stored."""
    REFUSED_RECORDS.add(count, signal=signal.value, transport=transport, reason=reason)


def _less(
    checked: CheckedRequest, body: bytes, rejected_count: int, message: str
) -> CheckedRequest:
    """Return the request without some more records, and with a message for the client."""
    reasons = [text for text in (checked.message, message) if text]
    return replace(
        checked,
        body=body,
        record_count=checked.record_count - rejected_count,
        rejected_count=checked.rejected_count + rejected_count,
        message="; ".join(reasons),
    )
