"""columns: telemetry as columns of Arrow. Needs pyarrow and numba, which the log does not.

    record_schema.py  the table of any other topic
    schemas.py        the four tables, column for column
    types.py          ExportRequest, Decoded, DeadLetter: into a decoder, and out of it

    decoder/          from OTLP bytes to Arrow
    encoder/          from Arrow to OTLP bytes

Nothing here does I/O. `docs/schemas.md` says where each value comes from.
"""

from frazil.model.arrow.decoder.decode import decode, decode_numbered, warm
from frazil.model.arrow.decoder.fallback import Decode, decode_some, rows_of_dead
from frazil.model.arrow.encoder.encode import encode
from frazil.model.arrow.record_schema import HEADER, RECORDS
from frazil.model.arrow.schemas import (
    DEAD_LETTERS,
    LOGS,
    METRICS,
    NUMBERED_TABLES,
    SPANS,
    TABLES,
    numbered,
)
from frazil.model.arrow.types import DeadLetter, Decoded, ExportRequest

__all__ = [
    "DEAD_LETTERS",
    "HEADER",
    "LOGS",
    "METRICS",
    "NUMBERED_TABLES",
    "RECORDS",
    "SPANS",
    "TABLES",
    "DeadLetter",
    "Decode",
    "Decoded",
    "ExportRequest",
    "decode",
    "decode_numbered",
    "decode_some",
    "encode",
    "numbered",
    "rows_of_dead",
    "warm",
]
