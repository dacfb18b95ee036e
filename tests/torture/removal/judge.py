"""What SQL, Spark, PyIceberg and DuckDB return, and every byte of the folder."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from pathlib import Path

import fastavro
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from frazil.lake.catalog.catalog import open_catalog
from frazil.settings import LakeConfig
from tests.torture.checker import Verdict

NUMBER = "observed_time_unix_nano"
Ask = Callable[[str], pa.Table]

Sums = tuple[int, int, int]
"""Count, sum and exclusive or of numbers: no lost, repeated or wrong one escapes all three."""


def sums_of(numbers: np.ndarray) -> Sums:
    return (
        len(numbers),
        int(numbers.sum()),
        int(np.bitwise_xor.reduce(numbers)) if len(numbers) else 0,
    )


def sums_by_sql(ask: Ask, where: str = "true") -> Sums:
    """Return the sums of the rows of both tiers."""
    text = f"SELECT count(*), sum({NUMBER}), bit_xor({NUMBER}) FROM logs WHERE {where}"
    row = ask(text).to_pydict().values()
    count, total, xor = (column[0] or 0 for column in row)
    return int(count), int(total), int(xor)


def sums_by_spark(spark: Ask) -> Sums:
    text = f"SELECT count(*), sum({NUMBER}), bit_xor({NUMBER}) FROM frazil.frazil.logs"
    count, total, xor = (column[0] or 0 for column in spark(text).to_pydict().values())
    return int(count), int(total), int(xor)


def sums_by_pyiceberg(folder: Path) -> tuple[Sums, list[str]]:
    """Return the sums of the table, and its data files."""
    config = LakeConfig()
    with closing(open_catalog(config, folder)) as catalog:
        scan = catalog.load_table("frazil.logs").scan(selected_fields=(NUMBER,))
        numbers = scan.to_arrow()[NUMBER].to_numpy()
        files = [task.file.file_path.removeprefix("file://") for task in scan.plan_files()]
    return sums_of(numbers), files


def sums_by_duckdb(files: list[str]) -> Sums:
    import duckdb

    text = f"SELECT count(*), sum({NUMBER}), bit_xor({NUMBER}) FROM read_parquet(?)"
    row = duckdb.execute(text, [files]).fetchone()
    assert row is not None
    return int(row[0]), int(row[1]), int(row[2])


def judge_sums(verdict: Verdict, who: str, found: Sums, wanted: Sums) -> None:
    if found != wanted:
        anomaly = "lost" if found[0] < wanted[0] else "foreign"
        verdict.add(anomaly, f"{who}: count, sum and xor are {found}, expected {wanted}")


def judge_bytes(verdict: Verdict, folder: Path, markers: Iterable[bytes]) -> int:
    """Look for the markers in every byte of the folder, compressed ones too. Returns the bytes
    that were searched."""
    markers = list(markers)
    size = 0
    for path in sorted(folder.rglob("*")):
        if not path.is_file():
            continue
        for name, data in _contents(path):
            size += len(data)
            for marker in markers:
                if marker in data:
                    verdict.add("foreign", f"{marker.decode()} in {path.name} ({name})")
    return size


def _contents(path: Path) -> Iterator[tuple[str, bytes]]:
    yield "bytes", path.read_bytes()
    if path.suffix == ".avro":
        with path.open("rb") as file:
            yield "records", repr(list(fastavro.reader(file))).encode()
    elif path.suffix == ".parquet":
        yield from _columns(path)


def _columns(path: Path) -> Iterator[tuple[str, bytes]]:
    """Yield the text of all columns, page by page as it was before compression: a value that is
    only in a dictionary is there, too."""
    schema = pq.read_schema(path)
    texts = [field.name for field in schema if pa.types.is_string(field.type)]
    with pq.ParquetFile(path, read_dictionary=texts) as file:
        for at in range(file.num_row_groups):
            for field in file.schema_arrow:
                kind = field.type
                if pa.types.is_map(kind):
                    values = file.read_row_group(at, [field.name]).column(0).combine_chunks()
                    yield field.name, repr(values.to_pylist()[:1]).encode()
                    for chunk in values.chunks if hasattr(values, "chunks") else [values]:
                        yield field.name, _joined(chunk.keys)
                        yield field.name, _joined(chunk.items)
                elif pa.types.is_dictionary(kind):
                    column = file.read_row_group(at, [field.name]).column(0)
                    yield field.name, b"\n".join(_joined(part.dictionary) for part in column.chunks)


def _joined(values: pa.Array) -> bytes:
    """Return all texts of an array."""
    unique = pc.drop_null(pc.unique(values.cast(pa.large_string())))
    return "\n".join(unique.to_pylist()).encode()
