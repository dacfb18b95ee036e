"""A promoted column has what the map has, as a value of its type, or null."""

from __future__ import annotations

import re
from itertools import cycle
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from frazil.model import PromotedColumn, PromotedType, Signal
from frazil.model.arrow import (
    ARROW_TYPES,
    decode,
    decode_dictionary,
    parse_texts,
    tables_with,
    with_filled,
)
from frazil.model.promotion import MAPS
from tests.model.arrow.decoder.reference import CLASSES, double_text
from tests.model.arrow.requests import KEYS, TEXTS, Writer, numbered

KINDS: tuple[PromotedType, ...] = ("VARCHAR", "BIGINT", "DOUBLE", "BOOLEAN")
ODD = (
    *("", "0", "-0", "00012", "+1", " 1", "1 ", "1\n", "1_000", "0x10", "1.", ".5", "1e5", "1E-7"),
    *("9223372036854775807", "9223372036854775808", "-9223372036854775808", "9" * 5000),
    *("-9223372036854775809", "0" * 40 + "7", "9007199254740992", "9007199254740993", "1e400"),
    *("-1e400", "1e-400", "0e-400", "1e9999999999", "NaN", "nan", "Infinity", "-Infinity", "inf"),
    *("-NaN", "true", "false", "True", "1.50", "123456789012345680000", "12345678901234567890"),
    *("1" + "0" * 24, "\u0663", "1\u0000", "1e5e5", "--1", "-", "e5", "1,5"),
)
NUMERIC = st.from_regex(r"-?[0-9]{1,25}(\.[0-9]{1,5})?([eE][+-]?[0-9]{1,3})?", fullmatch=True)


def value_of(text: str | None, kind: PromotedType) -> Any:
    """The value of a text, worked out with Python's numbers."""
    if text is None or kind == "VARCHAR":
        return text
    if kind == "BOOLEAN":
        return {"true": True, "false": False}.get(text)
    if kind == "BIGINT":
        digits = re.fullmatch(r"-?0*([0-9]{1,19})", text, re.ASCII)
        value = int(digits[1]) * (-1 if text[0] == "-" else 1) if digits else 2**63
        return value if -(2**63) <= value < 2**63 else None
    if text in ("NaN", "Infinity", "-Infinity"):
        return float(text)
    parts = re.fullmatch(r"(-?[0-9]+(?:\.[0-9]+)?)([eE][+-]?[0-9]{1,9})?", text, re.ASCII)
    if parts is None:
        return None
    number = float(text)
    if number in (float("inf"), float("-inf")) or (number == 0 and re.search("[1-9]", parts[1])):
        return None
    is_long = re.fullmatch(r"-?[0-9]{16,}", text) is not None
    return number if not is_long or is_kept(text, number) else None


def is_kept(text: str, number: float) -> bool:
    """Whether a long integer is that double, or its shortest digits and zeros."""
    digits, _, exponent = double_text(number).partition("e+")
    whole, _, rest = digits.partition(".")
    shortest = int(whole + rest) * 10 ** (int(exponent) - len(rest) if exponent else 0)
    return int(re.sub(r"^(-?)0+(?=[0-9])", r"\1", text)) in (int(number), shortest)


@pytest.mark.parametrize("kind", KINDS)
@given(st.lists(st.one_of(st.none(), st.sampled_from(ODD + TEXTS), st.text(), NUMERIC), max_size=9))
def test_a_text_becomes_a_value_or_null(kind: PromotedType, texts: list[str | None]) -> None:
    found = parse_texts(pa.array(texts, pa.string()), kind)
    assert found.type == ARROW_TYPES[kind]
    expected = [value_of(text, kind) for text in texts]
    assert repr(found.to_pylist()) == repr(expected)


@pytest.mark.parametrize("kind", KINDS)
def test_all_odd_texts_together(kind: PromotedType) -> None:
    """Each once, and each often: then the distinct ones are parsed."""
    for texts in (ODD, (*ODD, None) * 3, ("0" * 5000 + "7",)):
        found = parse_texts(pa.array(texts, pa.string()), kind)
        assert repr(found.to_pylist()) == repr([value_of(text, kind) for text in texts])


@given(st.lists(st.floats()))
def test_every_double_survives_its_text(doubles: list[float]) -> None:
    texts = pa.array([double_text(each) for each in doubles], pa.string())
    assert repr(parse_texts(texts, "DOUBLE").to_pylist()) == repr(doubles)


@given(st.lists(st.integers(-(2**63), 2**63 - 1)))
def test_every_integer_survives_its_text(integers: list[int]) -> None:
    texts = pa.array(map(str, integers), pa.string())
    assert parse_texts(texts, "BIGINT").to_pylist() == integers


@pytest.mark.parametrize("signal", CLASSES)
def test_a_column_has_what_the_map_has(signal: str) -> None:
    """For random requests of every shape: duplicate keys, nested values, all encodings."""
    rand = Random(f"promoted {signal}")
    writer = Writer(rand, wildness=0.1)
    requests = numbered(writer.request(signal) for _ in range(200))
    table, kinds = Signal(signal).table, cycle(KINDS)
    places = [(of, key) for of in MAPS for key in KEYS if key]
    columns = tuple(
        PromotedColumn(name=f"promoted_{at}", of=of, key=key, kind=next(kinds))
        for at, (of, key) in enumerate(rand.sample(places, 60))
    )
    promotions = {table: columns}
    decoded, plain = decode(signal, requests, promotions), decode(signal, requests)
    schema = tables_with(promotions)[table]
    decoded.batch.validate(full=True)
    assert decoded.batch.schema.equals(schema, check_metadata=True)
    assert str(decoded.batch.select(plain.batch.schema.names)) == str(plain.batch)
    rows = decoded.batch.to_pylist()
    for row in rows:
        for column in columns:
            text = dict(row[column.map_name]).get(column.key)
            assert repr(row[column.name]) == repr(value_of(text, column.kind)), (column, text)
    for kind in KINDS:
        names = [column.name for column in columns if column.kind == kind]
        assert any(row[name] is not None for row in rows for name in names), f"no {kind}"
    other = decode_dictionary(signal, requests, promotions).batch
    other.validate(full=True)
    assert str(other.cast(schema).to_pylist()) == str(rows)
    names = [column.name for column in columns]
    emptied = [
        pa.nulls(len(rows), field.type) if field.name in names else decoded.batch[field.name]
        for field in schema
    ]
    older = pa.RecordBatch.from_arrays(emptied, schema=schema)
    filled = with_filled(older.slice(3), names)
    assert str(filled.to_pylist()) == str(rows[3:])
