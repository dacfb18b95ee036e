"""The tables match docs/schemas.md."""

from __future__ import annotations

import re
from pathlib import Path

import pyarrow as pa
import pytest

from frazil.model.arrow.schemas import COMMON, PROMOTED_RESOURCE, PROMOTED_SPAN, TABLES, TIME

PAGE = Path(__file__).parents[3] / "docs" / "schemas.md"
WORDS = {
    pa.int32(): "int",
    pa.int64(): "long",
    pa.float64(): "double",
    pa.bool_(): "boolean",
    pa.string(): "string",
    pa.binary(): "binary",
    TIME: "timestamptz",
}
BEGINNING = "Every telemetry table begins with"


def word_of(kind: pa.DataType) -> str:
    """A type as the page writes it."""
    if pa.types.is_map(kind):
        assert not kind.item_field.nullable
        return f"map<{word_of(kind.key_type)}, {word_of(kind.item_type)}>"
    if pa.types.is_list(kind):
        assert not kind.value_field.nullable
        return f"list<{word_of(kind.value_type)}>"
    if pa.types.is_struct(kind):
        fields = (kind.field(index) for index in range(kind.num_fields))
        return f"struct<{', '.join(f'{field.name} {typed(field)}' for field in fields)}>"
    return WORDS[kind]


def typed(field: pa.Field) -> str:
    return word_of(field.type) + ("?" if field.nullable else "")


def page_rows(heading: str) -> list[tuple[str, ...]]:
    """The table under a heading: name, type, comment."""
    (section,) = re.findall(rf"^## {heading}\n(.*?)(?=^## |\Z)", PAGE.read_text(), re.M | re.S)
    return re.findall(r"^\| `(\w+)` \| (.+?) \| (.+?) \|$", section, re.M)


def code_rows(fields: list[pa.Field]) -> list[tuple[str, ...]]:
    return [(field.name, typed(field), field.metadata[b"comment"].decode()) for field in fields]


@pytest.mark.parametrize("name", TABLES)
def test_a_table_matches_its_page(name: str) -> None:
    """Name, type, nullability and comment of each column."""
    wanted = page_rows(name)
    if name != "dead_letters":
        wanted = page_rows(BEGINNING) + wanted
    assert code_rows(list(TABLES[name])) == wanted


def test_telemetry_tables_share_their_first_columns() -> None:
    for name in ("logs", "spans", "metrics"):
        assert list(TABLES[name])[: len(COMMON)] == COMMON


def test_promoted_columns_are_nullable_columns() -> None:
    for column in PROMOTED_RESOURCE:
        assert all(TABLES[name].field(column).nullable for name in ("logs", "spans", "metrics"))
    for column in PROMOTED_SPAN:
        assert TABLES["spans"].field(column).nullable
