"""Columns that only `logs` has."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from frazil.model.arrow.decoder.arrays import array_of, int32_of, text_array, word_array
from frazil.model.arrow.decoder.buffers import build_texts
from frazil.model.arrow.decoder.columns import NodeLevel
from frazil.model.arrow.decoder.fields import EMPTY, IS_STRINDEX
from frazil.model.arrow.decoder.promoted import Columns, promoted_columns
from frazil.model.arrow.schemas import INT, LONG
from frazil.model.severity import severity_number_of

BODY_TYPES = ("empty", "string", "bool", "int", "double", "array", "kvlist", "bytes")
"""By the mark of the value."""


def log_columns(records: NodeLevel, columns: Columns) -> dict[str, pa.Array]:
    """Return column -> array for log records."""
    kinds = records.words("body")
    kinds[kinds == IS_STRINDEX] = EMPTY
    records.arena.make_texts(records.nodes, records.slots["body"])
    attributes = records.maps("attributes")
    records.set_types(attributes, records.present("has_body", "body"))
    return {
        "observed_time_unix_nano": array_of(LONG, records.words("observed_time_unix_nano")),
        "trace_id": records.hex("trace_id", is_optional=True),
        "span_id": records.hex("span_id", is_optional=True),
        "flags": records.bits("flags"),
        "severity_number": _severity_numbers(records),
        "severity_text": records.text("severity_text", is_optional=True),
        "event_name": records.text("event_name", is_optional=True),
        "body": records.body("body", kinds != EMPTY),
        "body_type": word_array(kinds, BODY_TYPES),
        "attributes": records.record_map_of(attributes),
        "dropped_attributes_count": records.count("dropped_attributes_count"),
        **promoted_columns(records, attributes, columns, "record"),
    }


def _severity_numbers(records: NodeLevel) -> pa.Array:
    """Return the number that was sent, or else the one that the severity text names."""
    numbers = int32_of(records.words("severity_number"))
    # After the address of a text comes its length.
    is_named = (numbers == 0) & (records.words("severity_text", 1) != 0)
    if is_named.any():
        nodes, slot = records.nodes[is_named], records.slots["severity_text"]
        texts = text_array(*build_texts(records.arena.words, nodes, slot)).dictionary_encode()
        known = [severity_number_of(text) for text in texts.dictionary.to_pylist()]
        numbers[is_named] = np.array(known, np.int32)[texts.indices.to_numpy()]
    return array_of(INT, numbers)
