"""Slots of the arena, and the dispatch table of the walk, built from the fields of OTLP.

The fields of a node get their slots in order. The table has one row per message and one entry per
tag; the constants of `walk` define the bits of an entry.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from frazil.model.arrow.decoder.arena import LEVEL_WORDS, NODE_WORDS_MAX, RULE_BITS, SLOT_BITS
from frazil.model.arrow.decoder.fields import NODES, ProtoField
from frazil.model.arrow.decoder.walk import (
    COUNTS,
    LEVEL_SHIFT,
    MARK_SHIFT,
    ROW_SHIFT,
    SLOT_SHIFT,
    TAG_BITS,
    UNKNOWN,
    WIDTH_SHIFT,
)
from frazil.model.protobuf.memory import Words
from frazil.model.protobuf.reader import (
    BOOL,
    BYTES,
    FIELD_ZERO,
    FIXED32,
    FIXED64,
    FLAT,
    GROUP,
    NODE,
    ONE_FIXED64,
    ONE_VARINT,
    PACKED_FIXED64,
    PACKED_VARINTS,
    REFUSED,
    SKIP_LENGTH,
    TEXT,
    VARINT,
    VARINT32,
    WIRE_TYPE,
    ZIGZAG32,
)

WIRE_VARINT, WIRE_FIXED64, WIRE_LENGTH, WIRE_GROUP, WIRE_GROUP_END, WIRE_FIXED32 = range(6)
WIRE_TYPES = {
    **dict.fromkeys((VARINT, VARINT32, ZIGZAG32, BOOL, ONE_VARINT), WIRE_VARINT),
    **dict.fromkeys((FIXED64, ONE_FIXED64), WIRE_FIXED64),
    **dict.fromkeys((NODE, FLAT, TEXT, BYTES, PACKED_FIXED64, PACKED_VARINTS), WIRE_LENGTH),
    FIXED32: WIRE_FIXED32,
}
SKIPS = {
    WIRE_VARINT: VARINT | UNKNOWN,
    WIRE_FIXED64: FIXED64 | UNKNOWN,
    WIRE_LENGTH: SKIP_LENGTH,
    WIRE_FIXED32: FIXED32 | UNKNOWN,
}
"""How an unknown field is skipped."""
PACKED = {ONE_FIXED64: PACKED_FIXED64, ONE_VARINT: PACKED_VARINTS}
"""Numbers of a list arrive one by one or packed."""
POINTS = ("number_point", "histogram_point", "exponential_point", "summary_point")
"""They share their slots, so that one expression reads rows of all kinds."""


def _inside(fields: tuple[ProtoField, ...]) -> Iterator[ProtoField]:
    """Yield fields, including those of flat messages."""
    for field in fields:
        yield field
        yield from _inside(field.fields)


def _slots_of(nodes: tuple[str, ...]) -> dict[str, int]:
    """Return place -> slot for nodes that share them."""
    fields = [field for node in nodes for field in _inside(NODES[node].fields) if field.place]
    words: dict[str, int] = {}
    for field in fields:
        words[field.place] = max(words.get(field.place, 0), field.words)
    slots = {}
    at = LEVEL_WORDS if NODES[nodes[0]].level else 1
    for place, width in words.items():
        slots[place] = at
        at += width
    return slots


def _width_of(node: str) -> int:
    slots = SLOTS[node]
    fields = [field for field in _inside(NODES[node].fields) if field.place]
    ends = [slots[field.place] + field.words for field in fields]
    width = max(ends, default=LEVEL_WORDS)
    assert width < NODE_WORDS_MAX
    return width


SLOTS = {node: _slots_of(POINTS if node in POINTS else (node,)) for node in NODES}
"""Node -> place -> slot."""
KEY, VALUE = SLOTS["key_value"]["key"], SLOTS["key_value"]["value"]
assert SLOTS["member"] == SLOTS["element"] == SLOTS["key_value"]
FIRST, COUNT = 1, 3
"""Of an array or kvlist, after its mark."""
TEXT_ADDRESS, TEXT_LENGTH, WORD_LENGTH = 1, 2, 3
"""Of a value that became text, after its mark. The type word of an array or kvlist follows its
text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DispatchTable:
    """Input of the walk, and the reasons it can report."""

    table: Words
    rules: Words
    roots: dict[str, int]
    """Signal -> row of its request."""
    reasons: dict[int, str]
    """Code of a broken rule in the arena -> reason."""


def _dispatch_table() -> DispatchTable:
    """Build one row without fields, then one per node and per flat message in it."""
    rows: dict[tuple[str, tuple[ProtoField, ...]], int] = {}
    for node, spec in NODES.items():
        for fields in (spec.fields, *(f.fields for f in _inside(spec.fields) if f.kind == FLAT)):
            rows.setdefault((node, fields), len(rows) + 1 << TAG_BITS)
    table = np.tile([_unknown_entry(tag) for tag in range(1 << TAG_BITS)], len(rows) + 1)
    rules = np.zeros(len(rows) + 1, np.int64)
    reasons = {}
    for (node, fields), row in rows.items():
        for field in fields:
            for wire_type, entry in _entries(node, field, rows):
                table[row | field.number << 3 | wire_type] = entry
            slot = SLOTS[node].get(field.place, 0)
            if field.rule is not None:
                assert rules[row >> TAG_BITS] < 1 << 63 - RULE_BITS
                rules[row >> TAG_BITS] <<= RULE_BITS
                rules[row >> TAG_BITS] |= _rule(slot, field)
            if field.rule is not None or field.flags & COUNTS:
                broken = row << SLOT_BITS | slot + field.after
                reasons[broken] = _reason(NODES[node].message, field)
    roots = {node: rows[node, NODES[node].fields] for node in ("logs", "traces", "metrics")}
    return DispatchTable(table=table.astype(np.int64), rules=rules, roots=roots, reasons=reasons)


def _reason(message: str, field: ProtoField) -> str:
    name = f"{message}.{field.place}.bucket_counts" if field.after else f"{message}.{field.place}"
    if field.rule:
        return f"{name} must be {field.rule} bytes long or empty"
    return f"{name} must not be above 2^63-1"


def _rule(slot: int, field: ProtoField) -> int:
    assert field.rule is not None
    return slot | field.rule // 8 << SLOT_BITS


def _unknown_entry(tag: int) -> int:
    wire_type = tag & 7
    if tag >> 3 == 0:
        return REFUSED | FIELD_ZERO << SLOT_SHIFT
    if wire_type in (WIRE_GROUP, WIRE_GROUP_END):
        return REFUSED | GROUP << SLOT_SHIFT
    return SKIPS.get(wire_type, REFUSED | WIRE_TYPE << SLOT_SHIFT)


def _entries(
    node: str, field: ProtoField, rows: dict[tuple[str, tuple[ProtoField, ...]], int]
) -> Iterator[tuple[int, int]]:
    """Yield wire type and entry for each wire type of this field."""
    if field.number == 0:
        return
    slot = SLOTS[node][field.place] if field.place else 0
    rest = field.flags | (slot + field.after) << SLOT_SHIFT | field.mark << MARK_SHIFT
    if field.kind == NODE:
        inner = NODES[field.node]
        rest |= _width_of(field.node) << WIDTH_SHIFT | inner.level << LEVEL_SHIFT
        rest |= rows[field.node, inner.fields] << ROW_SHIFT
    elif field.kind == FLAT:
        rest |= rows[node, field.fields] << ROW_SHIFT
    yield WIRE_TYPES[field.kind], field.kind | rest
    if field.kind in PACKED:
        yield WIRE_LENGTH, PACKED[field.kind] | rest


DISPATCH = _dispatch_table()
