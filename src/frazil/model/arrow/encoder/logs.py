"""Encode log records."""

from __future__ import annotations

import numpy as np

from frazil.model.arrow.encoder import fields
from frazil.model.arrow.encoder.attributes import ValueLocation, any_values, key_values, map_sizes
from frazil.model.arrow.encoder.protobuf import (
    Bools,
    Message,
    gathered,
    inside,
    joined,
    of_column,
    together,
)
from frazil.model.arrow.encoder.rows import Cells, EncoderRows
from frazil.model.arrow.encoder.value_types import EMPTY, LevelTypes, ValueTypes
from frazil.model.protobuf.memory import Words

LOG = (
    "time_unix_nano",
    "severity_number",
    "severity_text",
    "body",
    "attributes",
    "dropped_attributes_count",
    "flags",
    "trace_id",
    "span_id",
    "observed_time_unix_nano",
    "event_name",
)
"""Columns of a log record."""
BODY_DEPTH, ATTRIBUTE_DEPTH = 4, 5
"""Nesting depth of messages, from the request to a value."""


def log_records(rows: EncoderRows, types: ValueTypes) -> Message:
    """Return log record messages."""
    part = types.parts[-1]
    attributes, body = rows["attributes"], rows["body"]
    sizes = map_sizes(attributes)
    has_body = _has_body(body, part, sizes)
    words, body_words = part.spread(sizes, has_body.astype(np.int64))
    location = ValueLocation(words=types.words, depth=ATTRIBUTE_DEPTH)
    return together(
        fields.unsigned(1, rows["time_unix_nano"]),
        fields.enum(2, rows["severity_number"]),
        fields.text(3, rows["severity_text"]),
        _bodies(body, has_body, body_words, types),
        key_values(6, attributes, words, location),
        fields.dropped(7, rows["dropped_attributes_count"]),
        fields.flags_fixed(8, rows["flags"]),
        fields.trace_id(9, rows["trace_id"]),
        fields.span_id(10, rows["span_id"]),
        fields.unsigned(11, rows["observed_time_unix_nano"]),
        fields.text(12, rows["event_name"]),
    )


def _has_body(body: Cells, part: LevelTypes, sizes: Words) -> Bools:
    """Return which records have a body: those with one more type word than attributes; without
    type words, those whose body is not null."""
    is_there = body.present()
    has_body = np.where(part.is_plain(), is_there, part.row_counts() == sizes + 1)
    body.check(has_body | ~is_there, "has no word")
    return has_body


def _bodies(body: Cells, has_body: Bools, words: Words | None, types: ValueTypes) -> Message:
    """Return the bodies that exist. One may be without a value."""
    sent = body.take(np.flatnonzero(has_body))
    is_there = sent.present()
    is_empty = np.zeros(len(sent), np.bool_) if words is None else words == EMPTY
    sent.check(is_there != is_empty, "is not what its word says")
    location = ValueLocation(words=types.words, depth=BODY_DEPTH, is_json=True)
    flat = joined(inside(5, any_values(sent.filled(), words, location)))
    return of_column(gathered(flat, np.append(0, np.cumsum(has_body))))
