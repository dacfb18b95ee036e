"""Columns that only `spans` has."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from frazil.model.arrow.decoder.arrays import array_of, struct_list, word_array
from frazil.model.arrow.decoder.buffers import build_codes
from frazil.model.arrow.decoder.columns import Keys, NodeLevel
from frazil.model.arrow.decoder.dispatch import SLOTS
from frazil.model.arrow.decoder.promoted import Columns, promoted_columns
from frazil.model.arrow.decoder.values.value_types import Values
from frazil.model.arrow.schemas import EVENTS, INT, LINKS, LONG, PROMOTED_SPAN

SPAN_KEYS = Keys(PROMOTED_SPAN)
STATUS_CODE = "http_response_status_code"
KINDS = ("UNSPECIFIED", "INTERNAL", "SERVER", "CLIENT", "PRODUCER", "CONSUMER")
STATUS_CODES = ("UNSET", "OK", "ERROR")


def span_columns(spans: NodeLevel, columns: Columns) -> dict[str, pa.Array]:
    """Return column -> array for spans."""
    begin, end = spans.words("start_time_unix_nano"), spans.words("end_time_unix_nano")
    attributes = spans.maps("attributes")
    promoted = SPAN_KEYS.find(spans.arena.words, attributes)
    events, event_values = _events(spans)
    links, link_values = _links(spans)
    spans.set_types(attributes, event_values, link_values)
    codes, is_code = build_codes(spans.arena.words, promoted.pop(STATUS_CODE))
    return {
        "trace_id": spans.hex("trace_id"),
        "span_id": spans.hex("span_id"),
        "parent_span_id": spans.hex("parent_span_id", is_optional=True),
        "trace_state": spans.text("trace_state", is_optional=True),
        "name": spans.text("name"),
        "kind": word_array(spans.words("kind"), KINDS),
        "end_time_unix_nano": array_of(LONG, end),
        "duration_nano": array_of(LONG, np.maximum(end - begin, 0)),
        "status_code": word_array(spans.words("status_code"), STATUS_CODES),
        "status_message": spans.text("status_message", is_optional=True),
        "attributes": spans.record_map_of(attributes),
        STATUS_CODE: array_of(INT, codes, is_code),
        **{column: spans.promoted(nodes) for column, nodes in promoted.items()},
        "events": events,
        "links": links,
        "flags": spans.bits("flags"),
        "dropped_attributes_count": spans.count("dropped_attributes_count"),
        "dropped_events_count": spans.count("dropped_events_count"),
        "dropped_links_count": spans.count("dropped_links_count"),
        **promoted_columns(spans, attributes, columns, "record"),
    }


def _events(spans: NodeLevel) -> tuple[pa.Array, Values]:
    """Return the column, and the attributes of each span's events."""
    offsets, events = spans.inner("events", SLOTS["event"])
    attributes = events.maps("attributes")
    columns = {
        "time_unix_nano": array_of(LONG, events.words("time_unix_nano")),
        "name": events.text("name"),
        "attributes": events.map_of(attributes),
        "dropped_attributes_count": events.count("dropped_attributes_count"),
    }
    return struct_list(EVENTS, offsets, columns), attributes.within(offsets)


def _links(spans: NodeLevel) -> tuple[pa.Array, Values]:
    """Return the column, and the attributes of each span's links."""
    offsets, links = spans.inner("links", SLOTS["link"])
    attributes = links.maps("attributes")
    columns = {
        "trace_id": links.hex("trace_id"),
        "span_id": links.hex("span_id"),
        "trace_state": links.text("trace_state"),
        "attributes": links.map_of(attributes),
        "dropped_attributes_count": links.count("dropped_attributes_count"),
        "flags": links.bits("flags"),
    }
    return struct_list(LINKS, offsets, columns), attributes.within(offsets)
