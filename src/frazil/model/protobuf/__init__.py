"""model/protobuf: compiled protobuf reader. Needs numba.

memory.py  raw memory access, and the compile decorators
reader.py  tags, lengths, numbers, strings; faults and the limits of protobuf's own parser
"""

from frazil.model.protobuf.memory import (
    BLOCK_BYTES,
    address_of,
    byte_at,
    compiled,
    high_bits,
    inlined,
    part,
    put_word,
    reader_of,
    word_at,
)
from frazil.model.protobuf.reader import (
    DEPTH_MAX,
    FAULTS,
    FIELD_ZERO,
    GROUP,
    NOT_TEXT,
    PACKED_ODD,
    TAG_LONG,
    TAG_MAX,
    TOO_DEEP,
    TRUNCATED,
    VARINT_BYTES_MAX,
    VARINT_LONG,
    WELL,
    WIRE_TYPE,
    is_text,
    read_length,
    read_varint,
    read_varint32,
)

__all__ = [
    "BLOCK_BYTES",
    "DEPTH_MAX",
    "FAULTS",
    "FIELD_ZERO",
    "GROUP",
    "NOT_TEXT",
    "PACKED_ODD",
    "TAG_LONG",
    "TAG_MAX",
    "TOO_DEEP",
    "TRUNCATED",
    "VARINT_BYTES_MAX",
    "VARINT_LONG",
    "WELL",
    "WIRE_TYPE",
    "address_of",
    "byte_at",
    "compiled",
    "high_bits",
    "inlined",
    "is_text",
    "part",
    "put_word",
    "read_length",
    "read_varint",
    "read_varint32",
    "reader_of",
    "word_at",
]
