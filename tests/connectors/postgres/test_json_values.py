"""Values of Postgres as JSON, by what a real server writes for them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frazil.connectors.postgres.catalog import Catalog
from frazil.connectors.postgres.json_values import PostgresType, converter
from frazil.connectors.postgres.snapshot import parse_line
from frazil.errors import Malformed
from tests.connectors.postgres.server import PostgresServer

VALUES = [
    ("true::bool", True),
    ("(-32768)::int2", -32768),
    ("9223372036854775807::int8", 9223372036854775807),
    ("4294967295::oid", 4294967295),
    ("1.10::numeric(10,2)", "1.10"),
    ("'NaN'::numeric", "NaN"),
    ("1e30::numeric", "1" + "0" * 30),
    ("0.1::float4", 0.1),
    ("1e300::float8", 1e300),
    ("'NaN'::float8", "NaN"),
    ("'-Infinity'::float4", "-Infinity"),
    ("E'a\\t\"\\\\\\n\\u00e9'::text", 'a\t"\\\né'),
    ("''::varchar", ""),
    ("'x'::char(3)", "x  "),
    ("'\\x00ff'::bytea", "AP8="),
    ("'2026-01-31'::date", "2026-01-31"),
    ("'0044-03-15 BC'::date", "-0043-03-15"),
    ("'0001-01-01 BC'::date", "0000-01-01"),
    ("'12026-01-31'::date", "+12026-01-31"),
    ("'infinity'::date", "infinity"),
    ("'2026-01-31 10:20:30.5'::timestamp", "2026-01-31T10:20:30.5"),
    ("'2026-01-31 10:20:30+02'::timestamptz", "2026-01-31T08:20:30.000000Z"),
    ("'0044-03-15 12:00:00+00 BC'::timestamptz", "-0043-03-15T12:00:00.000000Z"),
    ("'-infinity'::timestamptz", "-infinity"),
    ("'10:20:30.000001'::time", "10:20:30.000001"),
    ("'24:00:00'::time", "24:00:00"),
    ("'01:20:30.25+02:30'::timetz", "22:50:30.25Z"),
    ("'1 year 2 days 03:04:05.6'::interval", "P1Y0M2DT3H4M5.6S"),
    ("'-1 month'::interval", "P0Y-1M0DT0H0M0S"),
    ("'0'::interval", "P0Y0M0DT0H0M0S"),
    ("'{\"a\": [1, null]}'::jsonb", '{"a": [1, null]}'),
    ("'11111111-2222-3333-4444-555555555555'::uuid", "11111111-2222-3333-4444-555555555555"),
    ("'happy'::mood", "happy"),
    ("7::digit", 7),
    ("'[1,5)'::int4range", "[1,5)"),
    ("'10.0.0.1'::inet", "10.0.0.1"),
    ("ARRAY[1,NULL,3]", [1, None, 3]),
    ("'{}'::int[]", []),
    ("'[0:1]={5,6}'::int[]", [5, 6]),
    ("ARRAY[[1,2],[3,4]]", [[1, 2], [3, 4]]),
    (
        "ARRAY['a,b','{x}','\"q\"','\\','NULL',NULL,'']",
        ["a,b", "{x}", '"q"', "\\", "NULL", None, ""],
    ),
    ("ARRAY['happy','sad']::mood[]", ["happy", "sad"]),
    ("ARRAY['2026-01-31 10:20:30']::timestamp[]", ["2026-01-31T10:20:30"]),
    ("ARRAY[7]::digit[]", [7]),
    ("ARRAY['\\xff'::bytea]", ["/w=="]),
    ("'(1,2),(0,0);(3,4),(2,2)'::text", "(1,2),(0,0);(3,4),(2,2)"),
    ("'{(1,2),(0,0);(3,4),(2,2)}'::box[]", ["(1,2),(0,0)", "(3,4),(2,2)"]),
]


def test_values_of_a_server(server: PostgresServer) -> None:
    """Each type, as the server writes it under the settings of our sessions, is the JSON of the
    table in docs/postgres.md."""
    with server.connect() as own:
        own.execute("CREATE TYPE mood AS ENUM ('happy', 'sad'); CREATE DOMAIN digit AS int")
    catalog = Catalog(server.connection, "test")
    try:
        for text, expected in VALUES:
            cursor = catalog._connection.execute(f"SELECT {text}".encode())
            result = cursor.pgresult
            assert result is not None
            oid, value = result.ftype(0), result.get_value(0, 0)
            assert value is not None
            found = converter(oid, catalog.types([oid]))(bytes(value))
            assert json.loads(found) == expected, text
    finally:
        catalog.close()


ARRAYS: st.SearchStrategy[Any] = st.lists(st.one_of(st.none(), st.text(max_size=5)), max_size=5)


def _array_text(values: list[str | None]) -> bytes:
    def one(value: str | None) -> str:
        if value is None:
            return "NULL"
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'

    return ("{" + ",".join(map(one, values)) + "}").encode("utf-8", "surrogatepass")


@given(ARRAYS)
def test_arrays_come_back(values: list[str | None]) -> None:
    """An array of any texts is the same list."""
    types: Mapping[int, PostgresType] = {}
    assert json.loads(converter(1009, types)(_array_text(values))) == values


@given(st.binary(max_size=30))
def test_any_bytes_are_an_array_or_refused(data: bytes) -> None:
    """What is no array is refused, never read as something else than JSON."""
    try:
        found = converter(1009, {})(data)
    except Malformed:
        return
    assert isinstance(json.loads(found), list)


@pytest.mark.parametrize(
    ("line", "cells"),
    [
        (b"1\t\\N\t", [b"1", None, b""]),
        (b"a\\tb\\nc\\\\N\t\\\\N\tx", [b"a\tb\nc\\N", b"\\N", b"x"]),
    ],
)
def test_lines_of_copy(line: bytes, cells: list[bytes | None]) -> None:
    """Escapes are undone; NULL is told from a text that looks like it."""
    assert parse_line(line, 3) == cells
    with pytest.raises(Malformed):
        parse_line(line, 2)
