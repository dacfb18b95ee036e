"""The first rows of a file: a bounded part of it, cut between rows."""

from __future__ import annotations

import gzip
import io
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from frazil.definitions import FileFormat
from frazil.errors import Malformed
from frazil.load import FilePreview
from frazil.load.preview import TEXT_BYTES_MAX, preview_file
from tests.load.loading import Loading
from tests.load.staged_formats import cases

ROWS = 40


def preview(
    loading: Loading, name: str, data: bytes, *, rows: int = 10, kind: FileFormat | None = None
) -> FilePreview:
    loading.put(name, data)
    store = loading.stage.open()
    return preview_file(store, store.head(name), kind, rows)


def test_every_format(tmp_path: Path) -> None:
    loading = Loading(tmp_path)
    for case in cases():
        found = preview(loading, f"{case.folder}/{case.name}", case.encode(ROWS))
        assert found.schema.names == ["id", "name", "amount", "is_paid", "day"], case
        assert found.rows.num_rows == 10 and found.is_cut and not found.errors, case
        assert found.rows["id"].to_pylist() == [2**53 + 7 * n for n in range(10)], case


def test_a_large_text_is_cut_between_rows(tmp_path: Path) -> None:
    """Also inside of a quoted field, or of an object over several lines."""
    loading = Loading(tmp_path)
    count = 2 * TEXT_BYTES_MAX // 100
    objects = [{"a": n, "b": "x\n" * 50} for n in range(count)]
    csv = "a,b\n" + "".join(f'{row["a"]},"{row["b"]}"\n' for row in objects)
    lines = "\n".join(map(json.dumps, objects))
    for name, text in (
        ("a.csv", csv),
        ("a.ndjson", lines),
        ("a.json", json.dumps(objects, indent=1)),
        ("b.json", lines),
    ):
        found = preview(loading, f"{name}.gz", gzip.compress(text.encode()), rows=10**6)
        assert found.is_cut and not found.is_whole and not found.errors, name
        rows = found.rows.to_pylist()
        assert rows == objects[: len(rows)] and len(rows) > 100, name


def test_errors_and_formats(tmp_path: Path) -> None:
    loading = Loading(tmp_path)
    found = preview(loading, "a.ndjson", b'{"a":1}\nbad\n{"a":2}\n')
    assert [error.line for error in found.errors] == [2]
    assert found.rows["a"].to_pylist() == [1, 2] and not found.is_cut
    as_text = preview(loading, "a.ndjson", b"x\ny\n", kind=FileFormat(type="text"))
    assert as_text.rows["line"].to_pylist() == ["x", "y"]
    with pytest.raises(Malformed, match="not a Parquet file"):
        preview(loading, "a.parquet", b"x" * 100)
    assert preview(loading, "empty.csv", b"").rows.num_rows == 0


def test_a_large_row_group_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("frazil.load.preview.GROUP_BYTES_MAX", 1000)
    sink = io.BytesIO()
    pq.write_table(pa.table({"a": list(range(10_000))}), sink)
    found = preview(Loading(tmp_path), "a.parquet", sink.getvalue())
    assert found.schema.names == ["a"]
    assert found.rows.num_rows == 0 and found.is_cut
