"""COPY INTO: every file once, in whole or as its errors say."""

from __future__ import annotations

import io
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc

from frazil.errors import Conflict, FrazilError, Malformed
from frazil.lake.loaded.ledger import LEDGER, read_ledger
from frazil.lake.maintain.orphan_files import remove_orphans
from tests.load.loading import CONFIG, Loading, run_inline

NDJSON = "FILE_FORMAT=(TYPE=NDJSON)"


def test_a_file_is_loaded_once(tmp_path: Path) -> None:
    loading = Loading(tmp_path)
    loading.put("a.ndjson", b'{"a":1}\n{"a":2}\n')
    assert loading.copy(f"COPY INTO t FROM @s {NDJSON}").row_count == 2
    loading.put("b.ndjson", b'{"a":3}\n')
    again = loading.copy(f"COPY INTO t FROM @s {NDJSON}")
    assert (again.row_count, again.known_count) == (1, 1)
    assert loading.copy(f"COPY INTO t FROM @s {NDJSON}").snapshot_id is None
    loading.put("a.ndjson", b'{"a":10}\n')
    new = loading.copy(f"COPY INTO t FROM @s {NDJSON}")
    assert [uri.rpartition("/")[2] for uri in new.replaced] == ["a.ndjson"]
    loading.copy(f"COPY INTO t FROM @s {NDJSON} FILES=('b.ndjson') FORCE=true")
    assert sorted(row["a"] for row in loading.rows("t")) == [1, 2, 3, 3, 10]


def test_errors(tmp_path: Path) -> None:
    loading = Loading(tmp_path)
    loading.put("a.ndjson", b'{"a":1}\n{"a":"x"}\nbad\n{"a":4}\n')
    loading.put("b.ndjson", b'{"a":5}\n')
    loading.put("c.ndjson.gz", b"not gzip")
    base = f"FROM @s {NDJSON}"
    with pytest.raises(Malformed, match=r"a\.ndjson, line 2, column a: \"x\" is not a BIGINT"):
        loading.copy(f"COPY INTO t (a BIGINT) {base}")
    with pytest.raises(FrazilError, match="MAX_ERRORS"):
        loading.copy(f"COPY INTO t (a BIGINT) {base} ON_ERROR=CONTINUE MAX_ERRORS=1")
    checked = loading.copy(
        f"COPY INTO t (a BIGINT) {base} ON_ERROR=CONTINUE VALIDATION_MODE=RETURN_ERRORS"
    )
    assert [report.error_count for report in checked.reports] == [2, 0, 1]
    assert not loading.catalog.table_exists(f"{CONFIG.namespace}.t")
    assert not list(tmp_path.rglob("*.parquet"))
    done = loading.copy(f"COPY INTO t (a BIGINT) {base} ON_ERROR=SKIP_FILE_3")
    assert [(r.row_count, r.error_count, r.is_skipped) for r in done.reports] == [
        (2, 2, False),
        (1, 0, False),
        (0, 1, True),
    ]
    assert sorted(row["a"] for row in loading.rows("t")) == [1, 4, 5]
    done = loading.copy(f"COPY INTO u (a BIGINT) {base} ON_ERROR=SKIP_FILE")
    assert sorted(row["a"] for row in loading.rows("u")) == [5]
    assert [report.is_skipped for report in done.reports] == [True, False, True]
    # What was skipped is tried again, after what was not tried yet.
    loading.put("d.ndjson", b'{"a":6}\n')
    assert loading.copy(f"COPY INTO u {base} ON_ERROR=SKIP_FILE MAX_FILES=1").row_count == 1
    loading.put("a.ndjson", b'{"a":1}\n')
    again = loading.copy(f"COPY INTO u {base} ON_ERROR=SKIP_FILE")
    assert (again.row_count, again.known_count) == (1, 2)


def test_columns_by_name_and_new_ones(tmp_path: Path) -> None:
    loading = Loading(tmp_path)
    loading.put("a.csv", b"a,b\n1,x\n")
    loading.copy("COPY INTO t FROM @s FILES=('a.csv')")
    loading.put("b.csv", b"c,b\n2026-01-01,y\n")
    with pytest.raises(Malformed, match="'c', which the table has not"):
        loading.copy("COPY INTO t FROM @s FILES=('b.csv')")
    loading.copy("COPY INTO t FROM @s FILES=('b.csv') ADD_COLUMNS=true PURGE=true")
    rows = {row["b"]: (row["a"], str(row["c"])) for row in loading.rows("t")}
    assert rows == {"x": (1, "None"), "y": (None, "2026-01-01")}
    assert [path.name for path in loading.files.iterdir()] == ["a.csv"]


def test_partitions(tmp_path: Path) -> None:
    loading = Loading(tmp_path)
    loading.put("a.csv", b"d,k,n\n2026-01-01,x,1\n2026-01-02,x,2\n2026-01-01,,3\n")
    loading.copy("COPY INTO t FROM @s PARTITION BY (month(d), k, bucket(4, n))")
    table = loading.catalog.load_table(f"{CONFIG.namespace}.t")
    assert [str(field.transform) for field in table.spec().fields] == [
        "month",
        "identity",
        "bucket[4]",
    ]
    assert table.scan(row_filter="k = 'x' and d = '2026-01-02'").to_arrow()["n"].to_pylist() == [2]
    assert sorted(row["n"] for row in loading.rows("t")) == [1, 2, 3]


def test_an_overwritten_file_is_refused(tmp_path: Path) -> None:
    loading = Loading(tmp_path)
    loading.put("a.ndjson", b'{"a":1}\n')

    def overwrite() -> None:
        loading.put("a.ndjson", b'{"a":2000}\n')

    with pytest.raises(Conflict, match=r"a\.ndjson was overwritten"):
        loading.copy(
            f"COPY INTO t FROM @s {NDJSON}",
            before_tasks=overwrite,
        )
    assert not loading.catalog.table_exists(f"{CONFIG.namespace}.t")


@pytest.mark.parametrize("has_table", [False, True])
def test_two_copies_at_once_load_once(tmp_path: Path, has_table: bool) -> None:
    first, second = Loading(tmp_path), Loading(tmp_path)
    if has_table:
        first.put("0.ndjson", b'{"a":0}\n')
        first.copy(f"COPY INTO t FROM @s {NDJSON}")
    for number in range(1, 6):
        first.put(f"{number}.ndjson", b'{"a":%d}\n' % number)
    both = threading.Barrier(2)
    waited: set[int] = set()

    def wait() -> None:
        if threading.get_ident() not in waited:
            waited.add(threading.get_ident())
            both.wait(30)

    with ThreadPoolExecutor(2) as pool:
        text = f"COPY INTO t FROM @s {NDJSON}"
        results = [pool.submit(each.copy, text, wait) for each in (first, second)]
        counts = sorted(result.result().row_count for result in results)
    assert counts == [0, 5]
    assert sorted(row["a"] for row in first.rows("t")) == list(range(0 if has_table else 1, 6))


def test_the_orphan_sweep_keeps_the_ledger(tmp_path: Path) -> None:
    loading = Loading(tmp_path)
    for name in ("a", "b"):
        loading.put(f"{name}.ndjson", b'{"a":1}\n')
        loading.copy(f"COPY INTO t FROM @s {NDJSON}")
    name = f"{CONFIG.namespace}.t"
    ledgers = list(tmp_path.rglob("ledger-*.parquet"))
    assert len(ledgers) == 2
    now_ms = max(int(path.stat().st_mtime * 1000) for path in ledgers) + 10
    remove_orphans(loading.catalog, name, run_inline, now_ms=now_ms, age_ms=-100_000)
    table = loading.catalog.load_table(name)
    ledger = read_ledger(table.properties[LEDGER], table.io)
    assert ledger["rows"].to_pylist() == [1, 1]
    assert len(list(tmp_path.rglob("ledger-*.parquet"))) == 1
    assert len(loading.rows("t")) == 2


def test_typed_formats(tmp_path: Path) -> None:
    loading = Loading(tmp_path)
    rows = pa.table(
        {
            "i": pa.array([1, None, 3], pa.int32()),
            "s": ["x", "y", None],
            "f": [1.5, None, -2.25],
            "l": [[1, 2], [], None],
            "b": pa.array([b"\x00\xff", b"", None]),
        }
    )
    for codec in ("none", "snappy", "gzip", "zstd", "lz4", "brotli"):
        sink = io.BytesIO()
        pq.write_table(rows, sink, compression=codec)
        loading.put(f"parquet_{codec}.parquet", sink.getvalue())
    for codec in ("uncompressed", "snappy", "zlib", "zstd", "lz4"):
        buffer = pa.BufferOutputStream()
        orc.write_table(rows, buffer, compression=codec)
        loading.put(f"orc_{codec}.orc", buffer.getvalue().to_pybytes())
    schema = {
        "type": "record",
        "name": "r",
        "fields": [
            {"name": "i", "type": ["null", "int"]},
            {"name": "s", "type": ["null", "string"]},
            {"name": "f", "type": ["null", "double"]},
            {"name": "l", "type": ["null", {"type": "array", "items": "long"}]},
            {"name": "b", "type": ["null", "bytes"]},
        ],
    }
    for codec in ("null", "deflate", "snappy"):
        sink = io.BytesIO()
        fastavro.writer(sink, schema, rows.to_pylist(), codec=codec)
        loading.put(f"avro_{codec}.avro", sink.getvalue())
    for index, path in enumerate(sorted(loading.files.iterdir())):
        result = loading.copy(f"COPY INTO t{index} FROM @s FILES=('{path.name}')")
        assert result.row_count == 3
        assert loading.rows(f"t{index}") == rows.to_pylist(), path.name


def test_nanoseconds_and_large_values_are_not_cut(tmp_path: Path) -> None:
    loading = Loading(tmp_path)
    sink = io.BytesIO()
    pq.write_table(
        pa.table(
            {
                "t": pa.array([1000, 1001], pa.timestamp("ns")),
                "u": pa.array([1, 2**64 - 1], pa.uint64()),
            }
        ),
        sink,
    )
    loading.put("a.parquet", sink.getvalue())
    done = loading.copy("COPY INTO t FROM @s ON_ERROR=CONTINUE")
    assert (done.row_count, done.error_count) == (1, 1)
    assert done.reports[0].errors[0].column == "t"
