"""Decode requests whatever is in them.

A request that cannot become rows becomes a dead letter, even if the decoder fails unexpectedly: it
must not block the requests after it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

import pyarrow as pa

from frazil.metrics import Counter
from frazil.model.arrow.types import DeadLetter, Decoded, ExportRequest

logger = logging.getLogger(__name__)

US_PER_MS = 1000
US_MAX = 2**63 - 1
STAGE = "decode"
"""`stage` of these dead letters."""

CRASHES = Counter("frazil.decode.failures", "Requests on which the decoder itself failed.")

Decode = Callable[[str, Sequence[ExportRequest]], Decoded]
"""Decodes requests of one signal: `logs`, `traces` or `metrics`."""


def decode_prefix(
    decode: Decode, signal: str, requests: Sequence[ExportRequest], schema: pa.Schema
) -> tuple[Decoded, int]:
    """Decode the first of these requests. Returns the result and how many it covers.

    All of them, unless the decoder fails or they are too large together: then fewer, down to one. A
    single request that fails becomes a dead letter.
    """
    count = len(requests)
    while True:
        try:
            return decode(signal, requests[:count]), count
        except MemoryError:
            raise
        except Exception as error:  # noqa: BLE001 # top of loop: one request must not stop the stream
            if count == 1:
                letter = _crashed(signal, requests[0], error)
                return Decoded(batch=pa.RecordBatch.from_pylist([], schema), dead=[letter]), 1
        count //= 2


def _crashed(signal: str, request: ExportRequest, error: Exception) -> DeadLetter:
    CRASHES.add(signal=signal)
    logger.error(
        "the decoder failed on a request",
        extra={"signal": signal, "offset": request.offset, "reason": repr(error)},
    )
    return DeadLetter(
        partition=request.partition,
        offset=request.offset,
        row=None,
        reason=f"the decoder failed: {error!r}",
        payload=request.body,
    )


def dead_letter_rows(
    topic: str, letters: Sequence[DeadLetter], requests: Sequence[ExportRequest], schema: pa.Schema
) -> pa.RecordBatch:
    """Return dead letters as rows. Their time is that of the request, so that a replay repeats
    it."""
    times = {request.offset: _clamped_us(request.ingest_time_ms) for request in requests}
    columns = {
        "topic": [topic] * len(letters),
        "_log_partition": [letter.partition for letter in letters],
        "_offset": [letter.offset for letter in letters],
        "_row": [letter.row for letter in letters],
        "time": [times[letter.offset] for letter in letters],
        "stage": [STAGE] * len(letters),
        "reason": [letter.reason for letter in letters],
        "payload": [letter.payload for letter in letters],
    }
    arrays = [pa.array(columns[field.name], field.type) for field in schema]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _clamped_us(time_ms: int) -> int:
    """Return microseconds, limited to what a column can hold."""
    return max(-US_MAX, min(time_ms * US_PER_MS, US_MAX))
