"""Encode spans with their events and links."""

from __future__ import annotations

import numpy as np

from frazil.model.arrow.encoder import fields
from frazil.model.arrow.encoder.attributes import ValueLocation, key_values, map_sizes
from frazil.model.arrow.encoder.protobuf import (
    Message,
    gathered,
    inside,
    joined,
    of_column,
    together,
)
from frazil.model.arrow.encoder.rows import Cells, EncoderRows
from frazil.model.arrow.encoder.value_types import ValueTypes
from frazil.model.protobuf.memory import Words

SPAN = (
    "trace_id",
    "span_id",
    "trace_state",
    "parent_span_id",
    "name",
    "kind",
    "time_unix_nano",
    "end_time_unix_nano",
    "attributes",
    "dropped_attributes_count",
    "events",
    "dropped_events_count",
    "links",
    "dropped_links_count",
    "status_code",
    "status_message",
    "flags",
)
"""Columns of a span."""
KINDS = ("UNSPECIFIED", "INTERNAL", "SERVER", "CLIENT", "PRODUCER", "CONSUMER")
STATUS_CODES = ("UNSET", "OK", "ERROR")
ATTRIBUTE_DEPTH, INNER_DEPTH = 5, 6
"""Nesting depth of messages, from the request to a value of a span, or of an event or link."""


def spans(rows: EncoderRows, types: ValueTypes, *, has_empty: bool = False) -> Message:
    """Return span messages."""
    attributes = rows["attributes"]
    event_offsets, events = rows["events"].items()
    link_offsets, links = rows["links"].items()
    words, event_words, link_words = types.parts[-1].spread(
        map_sizes(attributes),
        sizes_within(event_offsets, events.member("attributes")),
        sizes_within(link_offsets, links.member("attributes")),
    )
    inner = ValueLocation(words=types.words, depth=INNER_DEPTH)
    status = together(
        fields.text(2, rows["status_message"]), fields.word(3, rows["status_code"], STATUS_CODES)
    )
    return together(
        fields.trace_id(1, rows["trace_id"]),
        fields.span_id(2, rows["span_id"]),
        fields.text(3, rows["trace_state"]),
        fields.span_id(4, rows["parent_span_id"]),
        fields.text(5, rows["name"]),
        fields.word(6, rows["kind"], KINDS),
        fields.unsigned(7, rows["time_unix_nano"]),
        fields.unsigned(8, rows["end_time_unix_nano"]),
        key_values(9, attributes, words, ValueLocation(words=types.words, depth=ATTRIBUTE_DEPTH)),
        fields.dropped(10, rows["dropped_attributes_count"]),
        repeated(11, event_offsets, _events(events, event_words, inner)),
        fields.dropped(12, rows["dropped_events_count"]),
        repeated(13, link_offsets, _links(links, link_words, inner)),
        fields.dropped(14, rows["dropped_links_count"]),
        inside(15, status, None if has_empty else status.lengths != 0),
        fields.flags_fixed(16, rows["flags"]),
    )


def sizes_within(offsets: Words, maps: Cells) -> Words:
    """Return the number of values in the maps of each list."""
    ends = np.append(0, np.cumsum(map_sizes(maps)))
    return np.diff(ends[offsets])


def repeated(field: int, offsets: Words, message: Message) -> Message:
    """Return lists of messages as a repeated field."""
    return of_column(gathered(joined(inside(field, message)), offsets))


def _events(events: Cells, words: Words | None, location: ValueLocation) -> Message:
    return together(
        fields.unsigned(1, events.member("time_unix_nano")),
        fields.text(2, events.member("name").given()),
        key_values(3, events.member("attributes"), words, location),
        fields.dropped(4, events.member("dropped_attributes_count")),
    )


def _links(links: Cells, words: Words | None, location: ValueLocation) -> Message:
    return together(
        fields.trace_id(1, links.member("trace_id").given()),
        fields.span_id(2, links.member("span_id").given()),
        fields.text(3, links.member("trace_state").given()),
        key_values(4, links.member("attributes"), words, location),
        fields.dropped(5, links.member("dropped_attributes_count")),
        fields.flags_fixed(6, links.member("flags")),
    )
