"""OtlpBatches: batches for the topics of telemetry. Each record is an OTLP request.

Every record is checked as on the OTLP ports before anything is written, and one that is refused
refuses its batch. How the batch is stored depends on who recognizes a repetition of it:

- the producer numbers its batches: it is stored as one, with its producer and its transaction;
- otherwise each record becomes a batch of its own, with the digest of its request, as if it had
  come through an OTLP port. Clients repeat such records in other batches.

Records get the time at which the node took them, which is the ingest time of their rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Protocol

from frazil.errors import FrazilError, Malformed, TooLarge
from frazil.log import Append, Record, append_of_records, read_records
from frazil.log.produce import append_of_batch, stored_as, with_values
from frazil.model import Clock, Signal

RECORDS_MAX = 10_000
"""In one batch: each is checked, and may become a batch in the log. A collector sends a few."""

NO_JSON = Malformed("it is JSON; send OTLP in protobuf, the encoding otlp_proto of a collector")

OnStored = Callable[[bool], None]
"""Called once an append is durable, with whether it was a duplicate."""


class InvalidRecord(Malformed):
    """A record of a batch is refused, and the batch with it."""

    def __init__(self, index: int, error: FrazilError) -> None:
        super().__init__(f"record {index} of the batch: {error}")
        self.index = index


class OtlpRequest(Protocol):
    """A request that may be stored."""

    @property
    def body(self) -> bytes: ...
    @property
    def record_count(self) -> int: ...
    @property
    def digest(self) -> bytes | None: ...


class OtlpIntake(Protocol):
    """What checks, counts and stores OTLP requests. `ingest` has it; the node passes it in."""

    def check(self, signal: Signal, body: bytes) -> OtlpRequest:
        """Return a request as it may be stored. Raises `Malformed` or `TooLarge`. Any thread."""
        ...

    def stored(self, signal: Signal, records: int, length: int, *, is_duplicate: bool) -> None: ...
    def refused(self, signal: Signal, error: FrazilError, length: int) -> None: ...
    def describe_metrics(self, body: bytes, attributes: Mapping[str, str]) -> bytes:
        """Return metrics with attributes added to each resource. Raises `Malformed`. Any
        thread."""
        ...


@dataclass(frozen=True, slots=True)
class CheckedBatch:
    """Appends that store a client's batch, in order, and what to do when one is durable."""

    appends: tuple[Append, ...]
    on_stored: tuple[OnStored, ...] = ()


class OtlpBatches:
    """Any thread may use it."""

    def __init__(self, intake: OtlpIntake, clock: Clock) -> None:
        self.intake = intake
        self._clock = clock

    def checked(self, signal: Signal, data: memoryview) -> CheckedBatch:
        """Check a batch and every request in it. Raises `Malformed` or `TooLarge`."""
        append = append_of_batch(data)
        if append.header.record_count > RECORDS_MAX:
            raise TooLarge(
                f"{append.header.record_count} requests in one batch; the limit is {RECORDS_MAX}"
            )
        records = read_records(append.payload)
        requests = [
            self._request(signal, index, record.value) for index, record in enumerate(records)
        ]
        if append.header.has_producer or any(each.digest is None for each in requests):
            return self._whole(signal, append, records, requests)
        return self._singles(signal, records, requests)

    def single(self, signal: Signal, body: bytes) -> CheckedBatch:
        """Check a request that the node itself has made a record of. Raises `Malformed` or
        `TooLarge`."""
        record = Record(offset=0, timestamp_ms=0, key=None, value=body)
        return self._singles(signal, [record], [self.intake.check(signal, body)])

    def _singles(
        self, signal: Signal, records: Sequence[Record], requests: Sequence[OtlpRequest]
    ) -> CheckedBatch:
        """Return each request as a batch of its own."""
        now_ms = self._clock.wall_ms()
        return CheckedBatch(
            tuple(map(partial(_single, now_ms), records, requests)),
            tuple(self._on_stored(signal, [request]) for request in requests),
        )

    def _request(self, signal: Signal, index: int, value: bytes | None) -> OtlpRequest:
        try:
            if value is None:
                raise Malformed("it has no value; an OTLP request is required")
            return self.intake.check(signal, value)
        except TooLarge as error:
            self.intake.refused(signal, error, len(value or b""))
            raise TooLarge(f"record {index} of the batch: {error}") from None
        except Malformed as error:
            self.intake.refused(signal, error, len(value or b""))
            is_json = (value or b"").startswith(b"{")
            raise InvalidRecord(index, NO_JSON if is_json else error) from None

    def _whole(
        self,
        signal: Signal,
        append: Append,
        records: Sequence[Record],
        requests: Sequence[OtlpRequest],
    ) -> CheckedBatch:
        values = [request.body for request in requests]
        if any(record.value != value for record, value in zip(records, values, strict=True)):
            append = with_values(append, records, values)
        append = stored_as(append, None, self._clock.wall_ms())
        return CheckedBatch((append,), (self._on_stored(signal, requests),))

    def _on_stored(self, signal: Signal, requests: Sequence[OtlpRequest]) -> OnStored:
        def count(is_duplicate: bool) -> None:
            for request in requests:
                records, length = request.record_count, len(request.body)
                self.intake.stored(signal, records, length, is_duplicate=is_duplicate)

        return count


def _single(now_ms: int, record: Record, request: OtlpRequest) -> Append:
    """Return a request as a batch of its own."""
    stored = replace(record, offset=0, timestamp_ms=now_ms, value=request.body)
    return append_of_records([stored], digest=request.digest, append_time=True)
