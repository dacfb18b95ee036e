"""Encode resources and scopes, which every signal has."""

from __future__ import annotations

import numpy as np

from frazil.model.arrow.encoder.attributes import ValueLocation, key_values, map_sizes
from frazil.model.arrow.encoder.fields import dropped, text
from frazil.model.arrow.encoder.grouping import MessageLevel, changes
from frazil.model.arrow.encoder.protobuf import Bools, Message, inside, joined, together
from frazil.model.arrow.encoder.rows import EncoderRows
from frazil.model.arrow.encoder.value_types import ValueTypes

RESOURCE = ("resource_attributes", "resource_dropped_attributes_count", "resource_schema_url")
SCOPE = (
    "scope_name",
    "scope_version",
    "scope_attributes",
    "scope_dropped_attributes_count",
    "scope_schema_url",
)
"""Columns of each level."""
RESOURCE_DEPTH, SCOPE_DEPTH = 4, 5
"""Nesting depth of messages, from the request to an attribute value."""


def resource_level(
    rows: EncoderRows, types: ValueTypes, *, has_empty: bool = False
) -> MessageLevel:
    """Return the resource messages."""
    part = types.parts[0]
    first = np.zeros(len(part.numbers), np.bool_)
    first[0] = True
    is_new = changes(rows, RESOURCE, part, first)
    starts = np.flatnonzero(is_new)
    own, part = rows.take(starts), part.take(starts)
    attributes = own["resource_attributes"]
    (words,) = part.spread(map_sizes(attributes))
    resource = together(
        key_values(1, attributes, words, ValueLocation(words=types.words, depth=RESOURCE_DEPTH)),
        dropped(2, own["resource_dropped_attributes_count"]),
    )
    return level_of(
        is_new, 1, _inside(1, resource, has_empty=has_empty), text(3, own["resource_schema_url"])
    )


def scope_level(
    rows: EncoderRows, types: ValueTypes, above: MessageLevel, *, has_empty: bool = False
) -> MessageLevel:
    """Return the scope messages."""
    part = types.parts[1]
    is_new = changes(rows, SCOPE, part, above.is_new)
    starts = np.flatnonzero(is_new)
    own, part = rows.take(starts), part.take(starts)
    attributes = own["scope_attributes"]
    (words,) = part.spread(map_sizes(attributes))
    scope = together(
        text(1, own["scope_name"]),
        text(2, own["scope_version"]),
        key_values(3, attributes, words, ValueLocation(words=types.words, depth=SCOPE_DEPTH)),
        dropped(4, own["scope_dropped_attributes_count"]),
    )
    return level_of(
        is_new, 2, _inside(1, scope, has_empty=has_empty), text(3, own["scope_schema_url"])
    )


def level_of(is_new: Bools, field: int, *heads: Message) -> MessageLevel:
    """Return a level whose messages are all the same field."""
    column = joined(together(*heads))
    return MessageLevel(is_new=is_new, heads=column, fields=np.full(len(column), field))


def _inside(field: int, message: Message, *, has_empty: bool) -> Message:
    """Wrap as a field, omitted if empty, unless it `has_empty` ones."""
    return inside(field, message, None if has_empty else message.lengths != 0)
