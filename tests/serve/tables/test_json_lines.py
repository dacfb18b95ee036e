"""JSON lines become rows exactly, or not at all."""

from __future__ import annotations

import datetime
import json
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from frazil.errors import Malformed
from frazil.model import Rand
from frazil.results import json_objects
from frazil.serve.tables.json_lines import rows_of_lines
from frazil.serve.tables.keys import key_of_json, key_of_text
from frazil.tables import Operation, TableDefinition, new_definition

KINDS: dict[str, tuple[str, st.SearchStrategy[Any]]] = {
    "class": ("int64", st.integers(-(2**63), 2**63 - 1)),
    "tiny": ("int8", st.integers(-128, 127)),
    "big": ("uint64", st.integers(0, 2**64 - 1)),
    "flag": ("bool", st.booleans()),
    "half": ("float32", st.floats(width=32)),
    "whole": ("float64", st.floats()),
    "price": (
        "decimal(10,2)",
        st.decimals("-99999999.99", "99999999.99", places=2, allow_nan=False),
    ),
    "day": ("date", st.dates()),
    "naive": ("timestamp", st.datetimes()),
    "moment": (
        "timestamptz",
        st.datetimes(timezones=st.just(datetime.UTC)),
    ),
    "text": ("string", st.text(st.characters(exclude_categories=["Cs"]))),
    "raw": ("binary", st.binary()),
}


def wide() -> TableDefinition:
    columns = [(name, kind) for name, (kind, _) in KINDS.items()]
    return new_definition("wide", columns, ["class"], rand=Rand(1))


def row() -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(
        {
            name: values if name == "class" else values | st.none()
            for name, (_, values) in KINDS.items()
        }
    )


@given(st.lists(row(), min_size=1, max_size=5))
def test_what_the_api_returns_it_takes_again(rows: list[dict[str, Any]]) -> None:
    """Every value of every type, through JSON and back."""
    definition = wide()
    table = pa.Table.from_pylist(rows, definition.schema)
    (batch,) = table.combine_chunks().to_batches()
    body = b"\n".join(json_objects(batch))
    again = rows_of_lines(definition, Operation.UPSERT, body)
    again = again.cast(definition.schema)
    for name in definition.schema.names:
        one, other = table[name].to_pylist(), again[name].to_pylist()
        assert repr(one) == repr(other)  # NaN equals NaN
    for each in rows:
        key = json.loads(json.dumps(each["class"]))
        assert key_of_json(definition, key) == key_of_text(definition, str(key)) == each["class"]


@pytest.mark.parametrize(
    ("line", "error"),
    [
        ('{"class": "5"}', "line 2: column class: expected `int`, got `str`"),
        ('{"class": 5.0}', "line 2: column class: expected `int`, got `float`"),
        ('{"class": 1, "tiny": 128}', "line 2: column tiny: expected `int` <= 127"),
        ('{"class": 1, "big": 18446744073709551616}', "line 2, column big: not a uint64"),
        ('{"class": 1, "flag": 1}', "line 2: column flag: expected `bool"),
        ('{"class": 1, "half": 1e39}', "line 2, column half: 1e+39 is out of the range"),
        ('{"class": 1, "whole": "1"}', "line 2: column whole: "),
        ('{"class": 1, "price": 1.005}', "line 2, column price: not a decimal(10,2)"),
        ('{"class": 1, "price": "123456789.00"}', "line 2, column price: not a decimal(10,2)"),
        ('{"class": 1, "day": "2026-02-30"}', "line 2: column day: invalid"),
        ('{"class": 1, "naive": "2026-01-01T00:00:00Z"}', "line 2, column naive: "),
        ('{"class": 1, "moment": "2026-01-01T00:00:00"}', "line 2, column moment: "),
        ('{"class": 1, "moment": "2026-01-01T00:00:00.1234567Z"}', "at most 6 digits"),
        ('{"class": 1, "raw": "%"}', "line 2: column raw: invalid base64"),
        ('{"class": 1, "text": "\\ud800"}', "line 2: "),
        ('{"tiny": 1}', "line 2: object missing required field `class`"),
        ('{"class": null}', "line 2: column class: expected `int`, got `null`"),
        ('{"class": 1, "other": 2}', "line 2: object contains unknown field `other`"),
        ("[1]", "line 2: expected `object`, got `array`"),
        ('{"class": 1', "line 2: input data was truncated"),
    ],
)
def test_a_value_that_does_not_fit_is_named(line: str, error: str) -> None:
    with pytest.raises(Malformed) as caught:
        rows_of_lines(wide(), Operation.UPSERT, b'{"class": 1}\n' + line.encode())
    assert error in str(caught.value)


def test_an_update_sets_the_same_columns_of_all_rows() -> None:
    rows = rows_of_lines(
        wide(), Operation.UPDATE, b'{"class": 1, "text": null}\n\n{"class": 2, "text": "b"}\n'
    )
    assert rows.to_pylist() == [{"class": 1, "text": None}, {"class": 2, "text": "b"}]
    with pytest.raises(Malformed, match="line 3, column text: other lines do not set it"):
        rows_of_lines(wide(), Operation.UPDATE, b'{"class": 1}\n\n{"class": 2, "text": "b"}')
    with pytest.raises(Malformed, match="no rows"):
        rows_of_lines(wide(), Operation.UPDATE, b"\n")
    with pytest.raises(Malformed, match="unknown field `text`"):
        rows_of_lines(wide(), Operation.DELETE, b'{"class": 1, "text": "b"}')


def test_keys_of_several_columns_are_arrays() -> None:
    columns = [("day", "date"), ("name", "string"), ("amount", "decimal(5,1)")]
    definition = new_definition("t", columns, ["name", "day", "amount"], rand=Rand(1))
    key = ("a/b", datetime.date(2026, 1, 2), Decimal("1.5"))
    assert key_of_text(definition, '["a/b", "2026-01-02", 1.5]') == key
    assert key_of_json(definition, ["a/b", "2026-01-02", "1.5"]) == key
    for text in ("a", '["a"]', '["a", "x", 1]', "{}"):
        with pytest.raises(Malformed):
            key_of_text(definition, text)
