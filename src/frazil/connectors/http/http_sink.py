"""HttpSink: posts records in batches.

2xx                        they are safe there
408, 425, 429, 5xx         sent again, after Retry-After; then the process ends, and backs off
401, 403, 404, 405 …       the sink stops until RESUME: the connection is wrong, not a record
other 4xx                  each record is sent alone; those refused go to the dead letters
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Annotated, Any, Literal

import msgspec

from frazil.connectors.contract import RecordError, SinkRecord
from frazil.connectors.http.web_client import WebClient
from frazil.errors import Unavailable
from frazil.model import Clock, KiB, MiB

TRIES = 3
RETRY_S = 0.5
RETRY_S_MAX = 30.0
RESPONSE_BYTES_MAX = 64 * KiB


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpSinkOptions:
    """Options of TYPE http in CREATE SINK."""

    path: str = ""
    """Below the URL of the connection."""
    format: Literal["ndjson", "json", "envelope"] = "ndjson"
    """Values as lines, values as a list, or lines with topic, partition, offset, key and value."""
    batch_records: Annotated[int, msgspec.Meta(ge=1, le=100_000)] = 500
    batch_bytes: Annotated[int, msgspec.Meta(ge=1, le=64 * MiB)] = 1 * MiB


@dataclass(slots=True)
class HttpSink:
    """Implements `Sink`."""

    options: HttpSinkOptions
    client: WebClient
    clock: Clock

    def open(self) -> None:
        """The first request connects."""

    def put(self, records: Sequence[SinkRecord]) -> Sequence[RecordError]:
        refused: list[RecordError] = []
        lines: list[tuple[SinkRecord, bytes]] = []
        for each in records:
            try:
                lines.append((each, self._line(each)))
            except (msgspec.DecodeError, UnicodeDecodeError) as error:
                reason = f"the value is no JSON: {error}; FORMAT=envelope takes any"
                refused.append(_refused(each, reason))
        for batch in self._batches(lines):
            refused += self._post(batch)
        return refused

    def flush(self) -> None:
        """Nothing to do: a response says that it is safe."""

    def close(self) -> None:
        self.client.close()

    def _line(self, each: SinkRecord) -> bytes:
        record = each.record
        if self.options.format != "envelope":
            # Compact: a value may have line breaks. Numbers stay as they are written.
            raw = msgspec.json.decode(record.value or b"null", type=msgspec.Raw)
            text = bytes(raw).strip()
            msgspec.json.decode(text)
            return text if b"\n" not in text else msgspec.json.format(text, indent=-1)
        return msgspec.json.encode(
            {
                "topic": each.topic,
                "partition": each.partition,
                "offset": record.offset,
                "timestamp_ms": record.timestamp_ms,
                "key": _shown(record.key),
                "value": _shown(record.value),
                "headers": [[name, _shown(value)] for name, value in record.headers],
            }
        )

    def _batches(
        self, lines: Sequence[tuple[SinkRecord, bytes]]
    ) -> Iterator[list[tuple[SinkRecord, bytes]]]:
        batch: list[tuple[SinkRecord, bytes]] = []
        size = 0
        for each, line in lines:
            is_full = len(batch) >= self.options.batch_records
            if batch and (is_full or size + len(line) > self.options.batch_bytes):
                yield batch
                batch, size = [], 0
            batch.append((each, line))
            size += len(line) + 1
        if batch:
            yield batch

    def _post(self, batch: list[tuple[SinkRecord, bytes]]) -> list[RecordError]:
        first, last = batch[0][0], batch[-1][0]
        lines = [line for _, line in batch]
        is_list = self.options.format == "json"
        body = b"[" + b",".join(lines) + b"]" if is_list else b"\n".join(lines) + b"\n"
        headers = {
            "Content-Type": "application/json" if is_list else "application/x-ndjson",
            "Idempotency-Key": f"{first.topic}/{first.partition}/"
            f"{first.record.offset}-{last.record.offset}",
        }
        for attempt in range(TRIES):
            response = self.client.request(
                "POST", body=body, headers=headers, bytes_max=RESPONSE_BYTES_MAX
            )
            if HTTPStatus.OK <= response.status < HTTPStatus.MULTIPLE_CHOICES:
                return []
            if not response.is_retried:
                break
            pause_s = response.retry_after_s
            if pause_s is None:
                pause_s = RETRY_S * 2**attempt
            self.clock.sleep(min(pause_s, RETRY_S_MAX))
        else:
            raise Unavailable(f"the server answers {response.text()}")
        if len(batch) == 1:
            return [_refused(first, f"the server answers {response.text()}")]
        return [error for each in batch for error in self._post([each])]


def _refused(each: SinkRecord, reason: str) -> RecordError:
    return RecordError(partition=each.partition, offset=each.record.offset, reason=reason)


def _shown(value: bytes | None) -> Any:
    """Return bytes as text, or as base64 in an object if they are no UTF-8."""
    if value is None:
        return None
    try:
        return value.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(value).decode()}
