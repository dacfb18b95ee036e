"""Mutations of valid bodies.

A body is mutated at field boundaries, and mostly the enclosing lengths are corrected: otherwise
nearly all bodies would be refused at their first length, and prove little.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from google.protobuf.descriptor import FieldDescriptor

from tests.fuzz.corpus import ID_LENGTHS, Body, Node, read_varint, varint

DEPTH_LIMIT = 100

VARINTS = tuple(
    bytes.fromhex(digits)
    for digits in (
        *("00", "01", "7f", "8001", "8000", "8080808000", "808080808000"),
        *("ffffffff07", "ffffffff0f", "ffffffff1f", "ff" * 8 + "7f"),
        *("ff" * 9 + tenth for tenth in ("00", "01", "02")),
        *("80" * 9 + tenth for tenth in ("01", "7f")),
        *("80" * 10 + "00", "80"),
    )
)
"""Varints of all widths. The last two are invalid."""
FIXED64 = tuple(
    bytes.fromhex(digits)
    for digits in (
        "00" * 8,
        "ff" * 8,
        "ff" * 7 + "7f",
        "00" * 7 + "80",
        "0102030405060708",
        "ff" * 7,
    )
)
"""The last one is too short."""
FIXED32 = (b"\x00" * 4, b"\xff" * 4, b"\xff" * 3)
TEXTS = (
    *(b"", b"a", "\u00e9".encode(), "\u20ac".encode(), "\U0001f600".encode()),
    "\u0080\u07ff\u0800\uffff\U00010000\U0010ffff\ud7ff\ue000".encode(),
    # Lone bytes, truncated, overlong, surrogates, above U+10FFFF, invalid continuation.
    *map(bytes.fromhex, ("80", "ff", "c2", "e282", "efbf", "f09f98", "c1bf", "e09fbf", "f08fbfbf")),
    *map(bytes.fromhex, ("eda080", "f4908080", "f5808080", "c328", "e228a1", "f09f2880")),
)
NUMBERS = (0, 1, 2, 3, 5, 9, 15, 16, 17, 31, 32, 33, 127, 2**11, 2**21, 2**28, 2**29 - 1, 2**29)
"""Field numbers. The first and the last are invalid."""


def mutate(body: Body, other: Body, rand: Random) -> bytes:
    """Return a body after one or two mutations; some insert a piece of the other body."""
    data = MUTATIONS[int(rand.random() * len(MUTATIONS))](body, other, rand)
    if rand.random() < 0.15:
        data = scribble(data, rand)
    return data


def scribble(data: bytes, rand: Random) -> bytes:
    """Change bytes regardless of structure."""
    if not data:
        return b"\x0a"
    at = int(rand.random() * len(data))
    way = int(rand.random() * 7)
    if way < 3:
        return data[:at] + bytes((data[at] ^ 1 << int(rand.random() * 8),)) + data[at + 1 :]
    if way == 3:
        return data[:at] + bytes((int(rand.random() * 256),)) + data[at + 1 :]
    if way == 4:
        return data[:at]
    to = min(len(data), at + 1 + int(rand.random() * 12))
    if way == 5:
        return data[:at] + data[to:]
    return data[:to] + data[at:to] + data[to:]


def _pick(body: Body, rand: Random) -> Node:
    if body.edges and rand.random() < 0.3:
        return body.edges[int(rand.random() * len(body.edges))]
    return body.nodes[int(rand.random() * len(body.nodes))]


def _piece(body: Body, node: Node, piece: bytes) -> bytes:
    return body.with_replaced(node.begin, node.end, piece, node.parent)


def scribble_body(body: Body, other: Body, rand: Random) -> bytes:
    return scribble(body.data, rand)


def remove_field(body: Body, other: Body, rand: Random) -> bytes:
    """Remove a field."""
    return _piece(body, _pick(body, rand), b"")


def repeat_field(body: Body, other: Body, rand: Random) -> bytes:
    """Repeat a field, perhaps with another one in between."""
    node = _pick(body, rand)
    again = body.data[node.begin : node.end]
    between = _pick(other, rand)
    middle = other.data[between.begin : between.end] if rand.random() < 0.5 else b""
    return _piece(body, node, again + middle + again)


def graft_field(body: Body, other: Body, rand: Random) -> bytes:
    """Replace a field with one of the other body, or insert that before or behind it."""
    node, piece = _pick(body, rand), _pick(other, rand)
    grafted = other.data[piece.begin : piece.end]
    way = rand.random()
    if way < 0.3:
        return _piece(body, node, grafted)
    at = node.begin if way < 0.6 else node.end
    return body.with_replaced(at, at, grafted, node.parent)


def insert_sibling(body: Body, other: Body, rand: Random) -> bytes:
    """Insert a field of the other body behind one in the same message type.

    For a oneof this is the rare case of two members. Sometimes the first is repeated after it.
    """
    node = rand.choice(body.choices) if body.choices and rand.random() < 0.5 else _pick(body, rand)
    home = node.field.containing_type if node.field is not None else None
    kin = [each for each in other.nodes if each.field and each.field.containing_type is home]
    if not kin:
        return graft_field(body, other, rand)
    piece = rand.choice(kin)
    own, foreign = body.data[node.begin : node.end], other.data[piece.begin : piece.end]
    return _piece(body, node, own + foreign + (own if rand.random() < 0.3 else b""))


def replace_contents(body: Body, other: Body, rand: Random) -> bytes:
    """Replace a field's content with that of another field."""
    node, piece = _pick(body, rand), _pick(other, rand)
    content = other.data[piece.content : piece.end]
    tag = body.data[node.begin : node.value]
    return _piece(body, node, tag + varint(len(content)) + content)


def set_edge_value(body: Body, other: Body, rand: Random) -> bytes:
    """Set a value at the limit of its range, or beyond."""
    node = _pick(body, rand)
    tag = body.data[node.begin : node.value]
    wire_type = body.data[node.begin] & 7
    if wire_type == 0:
        return _piece(body, node, tag + rand.choice(VARINTS))
    if wire_type == 1:
        return _piece(body, node, tag + rand.choice(FIXED64))
    if wire_type == 5:
        return _piece(body, node, tag + rand.choice(FIXED32))
    return _piece(body, node, tag + _content(node, rand))


def _content(node: Node, rand: Random) -> bytes:
    kind = node.field.type if node.field is not None else None
    if kind == FieldDescriptor.TYPE_STRING:
        content = b"a" * int(rand.random() * 140 if rand.random() < 0.5 else 0)
        content += rand.choice(TEXTS) + b"z" * int(rand.random() * 3) + rand.choice(TEXTS)
    elif kind == FieldDescriptor.TYPE_BYTES:
        content = rand.randbytes(rand.choice(ID_LENGTHS))
    elif kind in (FieldDescriptor.TYPE_FIXED64, FieldDescriptor.TYPE_DOUBLE):
        content = b"".join(rand.choices(FIXED64[:-1], k=int(rand.random() * 4)))
        content = content[: len(content) - rand.choice((0, 0, 1, 4))]
    elif kind == FieldDescriptor.TYPE_UINT64:
        content = b"".join(rand.choices(VARINTS, k=int(rand.random() * 4)))
    else:
        content = b""
    return varint(len(content)) + content


def change_tag(body: Body, other: Body, rand: Random) -> bytes:
    """Change the field number or the wire type of a field."""
    node = _pick(body, rand)
    tag, value = read_varint(body.data, node.begin)
    if rand.random() < 0.5:
        tag = tag & ~7 | int(rand.random() * 8)
    else:
        tag = rand.choice(NUMBERS) << 3 | tag & 7
    return _piece(body, node, varint(tag) + body.data[value : node.end])


def insert_unknown(body: Body, other: Body, rand: Random) -> bytes:
    """Insert an unknown field, or a known one with another type."""
    node = _pick(body, rand)
    number = rand.choice(NUMBERS)
    wire_type = int(rand.random() * 5.2)
    value = b""
    if wire_type == 0:
        value = rand.choice(VARINTS)
    elif wire_type == 1:
        value = rand.choice(FIXED64)
    elif wire_type == 2:
        content = rand.choice(TEXTS)
        value = varint(len(content)) + content
    elif wire_type == 3:
        value = varint(number << 3 | 4)
        if rand.random() < 0.5:
            value = body.data[node.begin : node.end] + value
    elif wire_type == 4:
        wire_type, value = 5, rand.choice(FIXED32)
    else:
        wire_type = 4
    at = node.begin if rand.random() < 0.5 else node.end
    return body.with_replaced(at, at, varint(number << 3 | wire_type) + value, node.parent)


def change_length(body: Body, other: Body, rand: Random) -> bytes:
    """Change a length, by little or by much."""
    node = _pick(body, rand)
    length = node.end - node.content
    lengths = (length + 1, length - 1, length * 2, 0, 2**31 - 1, 2**31, 2**32 + length, 2**35)
    wrong = varint(max(0, rand.choice(lengths)))
    return body.data[: node.value] + wrong + body.data[node.content :]


def pad_varint(body: Body, other: Body, rand: Random) -> bytes:
    """Pad a tag, a number or a length with extra varint bytes, also beyond the limit."""
    node = _pick(body, rand)
    tag, value = read_varint(body.data, node.begin)
    rest = body.data[value : node.end]
    width = 1 + int(rand.random() * 6)
    if rand.random() < 0.4:
        return _piece(body, node, varint(tag, width) + rest)
    front = body.data[node.begin : value]
    if tag & 7 == 2:
        padded = varint(node.end - node.content, width)
        return _piece(body, node, front + padded + body.data[node.content : node.end])
    if tag & 7 == 0:
        number, _ = read_varint(body.data, value)
        return _piece(body, node, front + varint(number, width + 5))
    return _piece(body, node, front + rest)


def change_packing(body: Body, other: Body, rand: Random) -> bytes:
    """Encode repeated numbers packed, unpacked or mixed, or pack a single number."""
    if not body.lists or rand.random() < 0.3:
        node = _pick(body, rand)
        number = read_varint(body.data, node.begin)[0] >> 3
        content = body.data[node.value : node.end]
        return _piece(body, node, varint(number << 3 | 2) + varint(len(content)) + content)
    node = rand.choice(body.lists)
    assert node.field is not None
    number = node.field.number
    is_varint = node.field.type == FieldDescriptor.TYPE_UINT64
    values = rand.choices(VARINTS[:-2] if is_varint else FIXED64[:-1], k=rand.randint(1, 3))
    packed = b"".join(values)
    piece = varint(number << 3 | 2) + varint(len(packed)) + packed
    one_by_one = b"".join(varint(number << 3 | (not is_varint)) + value for value in values)
    return _piece(body, node, rand.choice((piece, one_by_one, one_by_one + piece)))


def nest_values(body: Body, other: Body, rand: Random) -> bytes:
    """Nest values to about the depth limit."""
    if not body.values or rand.random() < 0.5:
        return repeat_field(body, other, rand)
    node = rand.choice(body.values)
    value = b"\x0a\x01a"
    # Each level is an ArrayValue and an AnyValue; `depth` counts the messages around this one.
    levels = (DEPTH_LIMIT - node.depth) // 2 - 2 + int(rand.random() * 5)
    for _ in range(levels):
        value = b"\x0a" + varint(len(value)) + value
        value = b"\x2a" + varint(len(value)) + value
    if rand.random() < 0.5:
        value = b"\x2a" + varint(len(value)) + value
    return body.with_replaced(node.content, node.end, value, body.nodes.index(node))


MUTATIONS: tuple[Callable[[Body, Body, Random], bytes], ...] = (
    scribble_body,
    scribble_body,
    remove_field,
    repeat_field,
    graft_field,
    insert_sibling,
    insert_sibling,
    replace_contents,
    set_edge_value,
    set_edge_value,
    change_tag,
    insert_unknown,
    change_length,
    pad_varint,
    change_packing,
    nest_values,
)
