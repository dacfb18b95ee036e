"""Readers: types are inferred upward, and no value is changed in silence."""

from __future__ import annotations

import gzip
import io
import json
from typing import Any

import cramjam
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from frazil.definitions import FileFormat
from frazil.errors import Malformed
from frazil.load.formats import ndjson
from frazil.load.formats.blocks import JSON_TEXT, Block
from frazil.load.formats.compression import decompressed
from frazil.load.formats.csv_rows import infer_csv, read_csv
from frazil.load.formats.json_documents import document_chunks
from frazil.load.formats.json_values import parse_row, type_of_value
from frazil.load.formats.lines import LineChunk, line_chunks
from frazil.load.formats.ndjson import infer_ndjson, read_ndjson
from frazil.load.formats.type_merge import finished

CSV = FileFormat(type="csv")


def chunks(data: bytes) -> list[LineChunk]:
    return list(line_chunks(io.BytesIO(data)))


def load_json(data: bytes, schema: pa.Schema | None = None) -> tuple[list[Any], list[int]]:
    schema = schema or finished(infer_ndjson(chunks(data)))
    return flat(list(read_ndjson(chunks(data), schema)))


def load_csv(data: bytes, schema: pa.Schema | None = None) -> tuple[list[Any], list[int]]:
    schema = schema or finished(infer_csv(io.BytesIO(data), CSV))
    return flat(list(read_csv(io.BytesIO(data), CSV, schema)))


def flat(blocks: list[Block]) -> tuple[list[Any], list[int]]:
    rows = [row for block in blocks for row in block.rows.to_pylist()]
    return rows, [error.line for block in blocks for error in block.errors]


@pytest.mark.parametrize(
    ("lines", "kind", "values"),
    [
        (["1", "true"], JSON_TEXT, ["1", "true"]),
        (['"007"', "7"], JSON_TEXT, ['"007"', "7"]),
        (['"007"'], pa.string(), ["007"]),
        (["1", "2.5"], pa.float64(), [1.0, 2.5]),
        (["9007199254740993", "2.5"], JSON_TEXT, ["9007199254740993", "2.5"]),
        (["9007199254740993"], pa.int64(), [9007199254740993]),
        (["18446744073709551616"], JSON_TEXT, ["18446744073709551616"]),
        (["0.12345678901234567890"], JSON_TEXT, ["0.12345678901234567890"]),
        (["1e-400"], JSON_TEXT, ["1e-400"]),
        (["1E5", "1.5"], pa.float64(), [1e5, 1.5]),
        (['"2026-01-01T00:00:00Z"'], pa.string(), ["2026-01-01T00:00:00Z"]),
        (["null", "3"], pa.int64(), [None, 3]),
        (["null"], pa.string(), [None]),
        (["{}"], JSON_TEXT, ["{}"]),
        (["[1]", "[2.5]"], pa.list_(pa.field("element", pa.float64())), [[1.0], [2.5]]),
        (['[1,"x"]'], JSON_TEXT, ['[1,"x"]']),
        (["[1]", '{"x":1}'], JSON_TEXT, ["[1]", '{"x":1}']),
        (['{"x":1}', '{"y":true}'], None, [{"x": 1, "y": None}, {"x": None, "y": True}]),
        (["123456789012.4567"], pa.float64(), [123456789012.4567]),
    ],
)
def test_json_values_are_kept(
    lines: list[str], kind: pa.DataType | None, values: list[Any]
) -> None:
    data = "".join(f'{{"a":{line}}}\n' for line in lines).encode()
    assert kind is None or finished(infer_ndjson(chunks(data))).field("a").type == kind
    assert load_json(data) == ([{"a": value} for value in values], [])


@pytest.mark.parametrize(
    "line",
    [
        *(b"null", b"[1]", b"5", b'{"a":1}null', b'{"a":1}{"a":2}', b'{"a":1,"a":2}'),
        *(b'{"a":NaN}', b'{"a":"\xff"}', b'{"a":1', b'{"a":"x"}', b'{"a":1.5}', b'{"b":1}'),
        *(b'{"a":99999999999999999999}', b'{"a":true}', b'{"a":[1]}', b'{"a":"\\ud800"}'),
    ],
)
def test_a_bad_json_line_is_an_error_with_its_number(line: bytes) -> None:
    data = b'{"a":1}\n\n' + line + b'\n{"a":2}'
    schema = pa.schema([pa.field("a", pa.int64())])
    assert load_json(data, schema) == ([{"a": 1}, {"a": 2}], [3])


@pytest.mark.parametrize(
    ("texts", "kind", "values"),
    [
        (["1", "20"], pa.int64(), [1, 20]),
        (["007", "1"], pa.string(), ["007", "1"]),
        (["+1"], pa.string(), ["+1"]),
        (["1", "2.50"], pa.float64(), [1.0, 2.5]),
        (["9007199254740993", "0.5"], pa.string(), ["9007199254740993", "0.5"]),
        (["0.12345678901234567890"], pa.string(), ["0.12345678901234567890"]),
        (["99999999999999999999"], pa.string(), ["99999999999999999999"]),
        (["true", "1"], pa.string(), ["true", "1"]),
        (["-0"], pa.float64(), [-0.0]),
        (["1e400"], pa.string(), ["1e400"]),
        (["NaN"], pa.string(), ["NaN"]),
        (["2026-02-30"], pa.string(), ["2026-02-30"]),
        (["2026-01-01T00:00:00+02:00"], pa.string(), ["2026-01-01T00:00:00+02:00"]),
        (['"a\nb"', "c"], pa.string(), ["a\nb", "c"]),
        (['""', "x"], pa.string(), ["", "x"]),
        (["1", ""], pa.int64(), [1, None]),
    ],
)
def test_csv_values_are_kept(texts: list[str], kind: pa.DataType, values: list[Any]) -> None:
    data = ("a,b\n" + "".join(f"{text},x\n" for text in texts)).encode()
    assert finished(infer_csv(io.BytesIO(data), CSV)).field("a").type == kind
    assert load_csv(data) == ([{"a": value, "b": "x"} for value in values], [])


def test_csv_errors_have_lines() -> None:
    data = b'a,b\n1,"x\ny"\nz,q\n1,2,3\n007,b\n5,\xff\n6,c\n'
    schema = pa.schema([pa.field("a", pa.int64()), pa.field("b", pa.string())])
    assert load_csv(data, schema) == (
        [{"a": 1, "b": "x\ny"}, {"a": 6, "b": "c"}],
        [4, 5, 6, 7],
    )


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**65), 2**65)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec="utf-8"), max_size=8)
    | st.sampled_from(["007", "2026-01-01", "1e5", "", "null"]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("xyz"), inner, max_size=3)
    ),
    max_leaves=5,
)
ROWS = st.lists(st.dictionaries(st.sampled_from("abc"), JSON, min_size=1), min_size=1, max_size=8)


def same(value: Any, loaded: Any, kind: pa.DataType) -> bool:
    """Whether a loaded value is the one that was written. A missing field is a null."""
    if kind == JSON_TEXT:
        return value is None if loaded is None else same_json(json.loads(loaded), value)
    if pa.types.is_struct(kind) and value is not None:
        return set(value) <= set(loaded) and all(
            same(value.get(f.name), loaded[f.name], f.type) for f in kind
        )
    if pa.types.is_list(kind) and value is not None:
        return len(value) == len(loaded) and all(
            same(v, w, kind.value_type) for v, w in zip(value, loaded, strict=True)
        )
    if isinstance(value, int) and not isinstance(value, bool) and kind == pa.float64():
        return int(loaded) == value
    return type(value) is type(loaded) and bool(value == loaded)


def same_json(one: Any, other: Any) -> bool:
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)


@settings(max_examples=300, deadline=None)
@given(ROWS)
def test_what_is_written_is_loaded(rows: list[dict[str, Any]]) -> None:
    """Write, infer, load and read; by both paths."""
    data = "".join(json.dumps(row) + "\n" for row in rows).encode()
    schema = finished(infer_ndjson(chunks(data)))
    for is_exact in (False, True):
        blocks = list(read_ndjson(chunks(data), schema, is_exact=is_exact))
        loaded, errors = flat(blocks)
        assert errors == [] and len(loaded) == len(rows)
        for row, found in zip(rows, loaded, strict=True):
            for field in schema:
                assert same(row.get(field.name), found[field.name], field.type), field
    slow = [block for chunk in chunks(data) for block in ndjson._slow(chunk, schema)]
    assert flat(slow) == flat(list(read_ndjson(chunks(data), schema)))


@settings(max_examples=100, deadline=None)
@given(JSON)
def test_a_type_exists_for_every_value(value: Any) -> None:
    parsed = parse_row(json.dumps({"a": value}).encode())["a"]
    assert finished(pa.schema([pa.field("a", type_of_value(parsed))])).field("a")


@settings(max_examples=200, deadline=None)
@given(
    st.lists(
        st.text(st.characters(codec="utf-8", exclude_characters='\r"\x00'), max_size=6),
        min_size=1,
        max_size=6,
    )
)
def test_csv_texts_come_back(texts: list[str]) -> None:
    """A loaded value has the spelling of its text, or the same number or date."""
    data = ("a,b\n" + "".join(f'"{text}",x\n' for text in texts)).encode()
    rows, errors = load_csv(data)
    assert errors == []
    for text, row in zip(texts, rows, strict=True):
        value = row["a"]
        if isinstance(value, bool):
            assert text == str(value).lower()
        elif isinstance(value, int | float):
            assert float(text) == value and (isinstance(value, float) or str(value) == text)
        else:
            assert str(value) == text


def test_json_documents() -> None:
    expected = [{"a": 1, "b": "x}]"}, {"a": 2, "b": None}]
    for text in (
        '[{"a":1,"b":"x}]"},\n {"a":\n2}]',
        '{"a":1,"b":"x}]"}\n{"a":2}',
        '  {"a":1,\n"b":"x}]"}{"a":2}  ',
        '\ufeff[\n{"a":1,"b":"x}]"},{"a":2}]\n',
    ):
        found = list(document_chunks(io.BytesIO(text.encode())))
        schema = finished(infer_ndjson(found))
        assert flat(list(read_ndjson(found, schema)))[0] == expected
    for text in ('[{"a":1}', '{"a":1}]', "[1]", '"x"', '[{"a":1}] x', '[{"a":1},[2]]', "12"):
        with pytest.raises(Malformed):
            list(document_chunks(io.BytesIO(text.encode())))


def test_documents_across_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wherever a read ends, also inside of a string or an escape."""
    text = json.dumps([{"a": 'x"\\{', "b": [1, {"c": "]"}]}, {"a": "y", "b": []}], indent=1)
    expected = b"".join(chunk.data for chunk in document_chunks(io.BytesIO(text.encode())))
    for size in range(1, 12):
        monkeypatch.setattr("frazil.load.formats.json_documents.CHUNK_BYTES", size)
        found = b"".join(chunk.data for chunk in document_chunks(io.BytesIO(text.encode())))
        assert found == expected


@pytest.mark.parametrize("size", [1, 7, 64, 1 << 20])
def test_lines_across_reads(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    monkeypatch.setattr("frazil.load.formats.lines.CHUNK_BYTES", size)
    data = b"one\n\nthree" + b"x" * 50 + b"\nfour"
    found = chunks(data)
    assert b"".join(chunk.data for chunk in found) == data + b"\n"
    lines = [1 + data[: data.index(c.data[:-1])].count(b"\n") for c in found if c.data.strip()]
    assert lines == [chunk.first_line for chunk in found if chunk.data.strip()]


def test_every_codec_and_damage() -> None:
    data = b"".join(b'{"a":%d}\n' % number for number in range(50_000))
    packed = {
        "gzip": gzip.compress(data[:1000]) + gzip.compress(data[1000:]),
        "snappy": bytes(cramjam.snappy.compress(data)),
        **{name: _compressed(data, name) for name in ("zstd", "lz4", "brotli")},
    }
    for name, body in packed.items():
        assert _all(body, name) == data
        with pytest.raises((OSError, EOFError, pa.ArrowException)):
            _all(body[: len(body) // 2], name)


def _compressed(data: bytes, name: str) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, name) as stream:
        stream.write(data)
    return bytes(sink.getvalue())


def _all(body: bytes, name: Any) -> bytes:
    stream = decompressed(io.BytesIO(body), name)
    parts = []
    while part := stream.read(10_000):
        parts.append(bytes(part))
    return b"".join(parts)
