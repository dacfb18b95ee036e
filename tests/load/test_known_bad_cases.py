"""Values that other loaders are known to change, and what becomes of them here.

From issues of DuckDB (true becomes 1.0, large integers become doubles, dates become timestamps,
a sample decides about the rest) and ClickHouse ("007" becomes 7, "1e5" a number, mixed arrays).
"""

from __future__ import annotations

import io

import pyarrow as pa
import pytest

from frazil.load.formats.blocks import JSON_TEXT
from frazil.load.formats.csv_rows import infer_csv
from frazil.load.formats.ndjson import infer_ndjson
from frazil.load.formats.type_merge import finished
from tests.load.test_formats import CSV, chunks, load_csv, load_json

INT, DOUBLE, TEXT, BOOL = pa.int64(), pa.float64(), pa.string(), pa.bool_()
DATE, TIME = pa.date32(), pa.timestamp("us", tz="UTC")

JSON_CASES: list[tuple[list[str], pa.DataType]] = [
    (["true", "1.5"], JSON_TEXT),
    (["true", "null", "1"], JSON_TEXT),
    (["false", '"false"'], JSON_TEXT),
    (["1", '"1"'], JSON_TEXT),
    (['"1"', '"2"'], TEXT),
    (['"1e5"'], TEXT),
    (['"0x1F"'], TEXT),
    (['"1_000"'], TEXT),
    (['"12:30:00"'], TEXT),
    (['"2026-01-01"', '"2026-13-01"'], TEXT),
    (['"2026-01-01 00:00:00"'], TEXT),
    (['"true"'], TEXT),
    (['"null"'], TEXT),
    (['"NaN"'], TEXT),
    (['""', '" "'], TEXT),
    (['"a\\u0000b"'], TEXT),
    (['"\\ud83d\\ude00"'], TEXT),
    (["-9223372036854775808", "9223372036854775807"], INT),
    (["9223372036854775808"], JSON_TEXT),
    (["9007199254740993", "null"], INT),
    (["9007199254740992", "0.5"], DOUBLE),
    (["-9007199254740993", "0.5"], JSON_TEXT),
    (["1.0", "2"], DOUBLE),
    (["0.1", "0.2", "0.30000000000000004"], DOUBLE),
    (["3.141592653589793238"], JSON_TEXT),
    (["1e308", "1e-308"], DOUBLE),
    (["1e309"], JSON_TEXT),
    (["5e-324"], DOUBLE),
    (["4.9e-324"], JSON_TEXT),
    (["-0.0"], DOUBLE),
    (["123456789.123456789"], JSON_TEXT),
    (["[1,true]"], JSON_TEXT),
    (["[]", "[null]"], pa.list_(pa.field("element", TEXT))),
    (["[[1],[2.5]]"], pa.list_(pa.field("element", pa.list_(pa.field("element", DOUBLE))))),
    (['{"x":1}', "1"], JSON_TEXT),
]
CSV_CASES: list[tuple[list[str], pa.DataType]] = [
    (["true", "false"], BOOL),
    (["True", "true"], TEXT),
    (["yes", "no"], TEXT),
    (["t", "f"], TEXT),
    (["0", "1"], INT),
    (["00", "01"], TEXT),
    (["1", "1.0", "01"], TEXT),
    (["1e5", "2"], DOUBLE),
    (["1E5x", "2"], TEXT),
    (["0x10"], TEXT),
    (["1_000"], TEXT),
    ([".5"], TEXT),
    (["5."], TEXT),
    (["inf"], TEXT),
    (["-inf", "1.5"], TEXT),
    (["nan", "1.5"], TEXT),
    (["NULL", "1"], TEXT),
    (["12345678901234567890"], TEXT),
    (["9007199254740993"], INT),
    (["2026-01-01", "2026-12-31"], DATE),
    (["2026-01-01", "01/02/2026"], TEXT),
    (["2026-1-1"], TEXT),
    (["20260101"], INT),
    (["2026-01-01T00:00:00Z"], TIME),
    (["2026-01-01", "2026-01-01T00:00:00Z"], TEXT),
    (["24:00:00"], TEXT),
    ([" 1", "2"], TEXT),
    (["1 ", "2"], TEXT),
    (["$5"], TEXT),
    (["5%"], TEXT),
    (["+49 30 1234"], TEXT),
    (["1.2.3.4"], TEXT),
]


@pytest.mark.parametrize(("values", "kind"), JSON_CASES)
def test_json(values: list[str], kind: pa.DataType) -> None:
    """All rows are loaded, and as text they are what was written."""
    data = "".join(f'{{"a":{value}}}\n' for value in values).encode()
    schema = finished(infer_ndjson(chunks(data)))
    assert schema.field("a").type == kind
    rows, errors = load_json(data)
    assert errors == [] and len(rows) == len(values)
    if kind == JSON_TEXT:
        assert [row["a"] for row in rows] == [None if v == "null" else v for v in values]


@pytest.mark.parametrize(("values", "kind"), CSV_CASES)
def test_csv(values: list[str], kind: pa.DataType) -> None:
    """All rows are loaded; what is text is the text that was written."""
    data = ("a,b\n" + "".join(f"{value},x\n" for value in values)).encode()
    assert finished(infer_csv(io.BytesIO(data), CSV)).field("a").type == kind
    rows, errors = load_csv(data)
    assert errors == [] and len(rows) == len(values)
    if kind == TEXT:
        assert [row["a"] for row in rows] == values


def test_the_last_value_counts_as_much_as_the_first() -> None:
    """A sample would have decided for integers, or for an error."""
    count = 300_000
    data = b"".join(b'{"a":%d}\n' % n for n in range(count)) + b'{"a":"x"}\n'
    rows, errors = load_json(data)
    assert errors == [] and (rows[-1]["a"], rows[7]["a"]) == ('"x"', "7")
    csv = b"a,b\n" + b"".join(b"%d,x\n" % n for n in range(count)) + b"007,x\n"
    rows, errors = load_csv(csv)
    assert errors == [] and (rows[-1]["a"], rows[7]["a"]) == ("007", "7")
