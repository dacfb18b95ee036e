"""model/arrow: telemetry as Arrow columns. Needs pyarrow and numba, which the log does not. No I/O.

    schemas.py        the four telemetry tables
    record_schema.py  the table of any other topic
    load_ledger.py    which files a table was loaded from
    promoted.py       columns of attributes that the settings promote
    types.py          ExportRequest, Decoded, DeadLetter: input and output of the decoder

    decoder/          OTLP bytes to Arrow
    encoder/          Arrow to OTLP bytes

`docs/schemas.md` says where each value comes from.
"""

from frazil.model.arrow.decoder.decode import decode, decode_dictionary, warm
from frazil.model.arrow.decoder.fallback import Decode, dead_letter_rows, decode_prefix
from frazil.model.arrow.decoder.values.number_text import write_double, write_integer
from frazil.model.arrow.encoder.encode import encode
from frazil.model.arrow.encoder.value_types import words_of
from frazil.model.arrow.load_ledger import (
    LEDGER_SCHEMA,
    LOADED,
    SKIPPED,
    LedgerEntry,
    loaded_keys,
    tried_keys,
    with_entries,
)
from frazil.model.arrow.promoted import (
    ARROW_TYPES,
    is_shared,
    parse_texts,
    promoted_field,
    promoted_in,
    promoted_values,
    promotion_of,
    table_with,
    tables_with,
    with_filled,
)
from frazil.model.arrow.record_schema import HEADER, RECORDS
from frazil.model.arrow.schemas import (
    DEAD_LETTERS,
    DICTIONARY,
    DICTIONARY_TABLES,
    LOGS,
    METRICS,
    PROMOTED_RESOURCE,
    PROMOTED_SPAN,
    SERVICE_NAME,
    SPANS,
    TABLES,
    dictionary_field,
)
from frazil.model.arrow.types import DeadLetter, Decoded, ExportRequest

__all__ = [
    "ARROW_TYPES",
    "DEAD_LETTERS",
    "DICTIONARY",
    "DICTIONARY_TABLES",
    "HEADER",
    "LEDGER_SCHEMA",
    "LOADED",
    "LOGS",
    "METRICS",
    "PROMOTED_RESOURCE",
    "PROMOTED_SPAN",
    "RECORDS",
    "SERVICE_NAME",
    "SKIPPED",
    "SPANS",
    "TABLES",
    "DeadLetter",
    "Decode",
    "Decoded",
    "ExportRequest",
    "LedgerEntry",
    "dead_letter_rows",
    "decode",
    "decode_dictionary",
    "decode_prefix",
    "dictionary_field",
    "encode",
    "is_shared",
    "loaded_keys",
    "parse_texts",
    "promoted_field",
    "promoted_in",
    "promoted_values",
    "promotion_of",
    "table_with",
    "tables_with",
    "tried_keys",
    "warm",
    "with_entries",
    "with_filled",
    "words_of",
    "write_double",
    "write_integer",
]
