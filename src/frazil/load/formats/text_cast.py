"""Strict casts from text: a text becomes a value only if it is the value's own spelling.

`007`, `+1`, ` 1`, `1e400` and `0.1234567890123456789` are not numbers here: they would come back
changed.
"""

from __future__ import annotations

import base64
import binascii
import math
import uuid
from collections.abc import Callable
from decimal import Decimal

import pyarrow as pa
import pyarrow.compute as pc

from frazil.load.formats.blocks import JSON_TEXT

INT_PATTERN = r"^(0|-?[1-9][0-9]{0,18})$"
UINT64_PATTERN = r"^(0|[1-9][0-9]{0,19})$"
FLOAT_PATTERN = r"^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?$"
BOOL_PATTERN = r"^(true|false)$"
DATE_PATTERN = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"
TIME = r"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?"
TIMESTAMP_PATTERN = f"^{TIME}$"
TIMESTAMPTZ_PATTERN = f"^{TIME}(Z|[+-][0-9]{{2}}:[0-9]{{2}})$"
DECIMAL_PATTERN = r"^-?(0|[1-9][0-9]*)(\.[0-9]+)?$"

EXACT_CHARACTERS = 15
"""A decimal number of at most 15 digits is always exact as a double."""
EXACT_INT_MAX = 2**53
"""Integers up to here are exact as doubles."""
TIMESTAMP = pa.timestamp("us")
TIMESTAMPTZ = pa.timestamp("us", tz="UTC")


def exact_float(text: str) -> float | None:
    """Return the double that is spelled so; None if digits would be lost."""
    number = float(text)
    if not math.isfinite(number):
        return None
    shortest = repr(number)
    if shortest == text or Decimal(shortest) == Decimal(text):
        return number
    return None


def cast_text(texts: pa.StringArray, kind: pa.DataType) -> tuple[pa.Array, set[int]]:
    """Cast texts. Returns the values and the indices of those that are not of this type; they are
    null in the values."""
    if kind in (pa.string(), JSON_TEXT):
        return texts, set()
    if kind in BY_VALUE or pa.types.is_fixed_size_binary(kind):
        return _by_value(texts, kind, BY_VALUE.get(kind, _uuid))
    pattern = _pattern_of(kind)
    if pattern is None:
        return pa.nulls(len(texts), kind), set(range(len(texts)))
    matches = pc.fill_null(pc.match_substring_regex(texts, pattern), True)
    bad = _indices(pc.invert(matches))
    if bad:
        texts = pc.if_else(matches, texts, pa.scalar(None, pa.string()))
    if kind == pa.float32():
        values, inexact = cast_text(texts, pa.float64())
        narrow = values.cast(kind)
        is_equal = pc.fill_null(pc.equal(narrow.cast(pa.float64()), values), True)
        inexact |= _indices(pc.invert(is_equal))
        return narrow, bad | inexact
    try:
        values = texts.cast(kind)
    except pa.ArrowInvalid:
        values, unfit = _one_by_one(texts, kind)
        bad |= unfit
    if kind == pa.float64():
        bad |= _inexact(texts, values)
    return values, bad


def _pattern_of(kind: pa.DataType) -> str | None:
    if pa.types.is_integer(kind):
        return UINT64_PATTERN if kind == pa.uint64() else INT_PATTERN
    if pa.types.is_floating(kind):
        return FLOAT_PATTERN
    if pa.types.is_boolean(kind):
        return BOOL_PATTERN
    if pa.types.is_date(kind):
        return DATE_PATTERN
    if pa.types.is_timestamp(kind):
        return TIMESTAMP_PATTERN if kind.tz is None else TIMESTAMPTZ_PATTERN
    if pa.types.is_decimal(kind):
        return DECIMAL_PATTERN
    return None


def _indices(mask: pa.BooleanArray) -> set[int]:
    return set(pc.indices_nonzero(mask).to_pylist()) if pc.any(mask).as_py() else set()


def _inexact(texts: pa.StringArray, values: pa.DoubleArray) -> set[int]:
    """Return the indices of numbers that lose digits as doubles."""
    is_long = pc.or_(
        pc.greater(pc.binary_length(texts), EXACT_CHARACTERS),
        pc.match_substring(texts, "e", ignore_case=True),
    )
    is_other = pc.not_equal(values.cast(pa.string()), texts)  # Arrow writes the shortest spelling
    indices = pc.indices_nonzero(pc.fill_null(pc.and_(is_long, is_other), False))
    if not len(indices):
        return set()
    return {
        index
        for index, text in zip(indices.to_pylist(), texts.take(indices).to_pylist(), strict=True)
        if exact_float(text) is None
    }


def _one_by_one(texts: pa.StringArray, kind: pa.DataType) -> tuple[pa.Array, set[int]]:
    """Cast in halves until those that fail are alone."""
    if len(texts) == 1:
        try:
            return texts.cast(kind), set()
        except pa.ArrowInvalid:
            return pa.nulls(1, kind), {0}
    half = len(texts) // 2
    parts, bad = [], set()
    for begin, part in ((0, texts.slice(0, half)), (half, texts.slice(half))):
        try:
            parts.append(part.cast(kind))
        except pa.ArrowInvalid:
            values, unfit = _one_by_one(part, kind)
            parts.append(values)
            bad |= {begin + index for index in unfit}
    return pa.concat_arrays(parts), bad


def _by_value(
    texts: pa.StringArray, kind: pa.DataType, parse: Callable[[str], object]
) -> tuple[pa.Array, set[int]]:
    values: list[object] = []
    bad = set()
    for index, text in enumerate(texts.to_pylist()):
        try:
            values.append(None if text is None else parse(text))
        except (ValueError, binascii.Error):
            values.append(None)
            bad.add(index)
    return pa.array(values, kind), bad


def _uuid(text: str) -> bytes:
    found = uuid.UUID(text)
    if str(found) != text.lower():
        raise ValueError(text)
    return found.bytes


BY_VALUE: dict[pa.DataType, Callable[[str], object]] = {
    pa.binary(): lambda text: base64.b64decode(text, validate=True),
}

CANDIDATES: tuple[tuple[pa.DataType, str], ...] = (
    (pa.int64(), INT_PATTERN),
    (pa.float64(), FLOAT_PATTERN),
    (pa.bool_(), BOOL_PATTERN),
    (pa.date32(), DATE_PATTERN),
    (TIMESTAMP, TIMESTAMP_PATTERN),
    (TIMESTAMPTZ, f"^{TIME}Z$"),
)
"""Types that texts are tried as, with their patterns. An offset other than Z would be lost."""


def infer_text(texts: pa.StringArray) -> pa.DataType:
    """Return the type of texts: the first that all of them spell. `uint64` stands for integers that
    are not exact as doubles."""
    if texts.null_count == len(texts):
        return pa.null()
    for kind, pattern in CANDIDATES:
        if not pc.all(pc.match_substring_regex(texts, pattern)).as_py():
            continue
        values, bad = cast_text(texts, kind)
        if bad:
            continue
        return big_or_small(values) if kind == pa.int64() else kind
    return pa.string()


def big_or_small(values: pa.Array | pa.ChunkedArray) -> pa.DataType:
    """Return `uint64` for integers of which some are not exact as doubles, else `int64`."""
    bounds = pc.min_max(values)
    low, high = bounds["min"].as_py(), bounds["max"].as_py()
    is_small = low is None or (low >= -EXACT_INT_MAX and high <= EXACT_INT_MAX)
    return pa.int64() if is_small else pa.uint64()
