"""Loads from every kind of store; `python -m tests.load.matrix` tests every format and codec."""

from __future__ import annotations

from pathlib import Path

import pytest

from frazil.errors import Conflict, Unknown
from frazil.load import staged_files
from tests.load.matrix import STORES, failures_of, opened
from tests.load.staged_formats import ALLOWED, Codec, FormatCase

ROWS = 300
CASES: dict[str, list[tuple[str, Codec]]] = {
    "local": [("ndjson", "gzip"), ("avro", "snappy")],
    "s3": [("parquet", "zstd"), ("csv", "none")],
    "azure": [("csv", "brotli"), ("parquet", "gzip")],
    "gcs": [("json", "lz4"), ("orc", "snappy")],
    "web": [("orc", "zstd"), ("ndjson", "snappy")],
}
"""Every store, every format and every codec at least once."""


@pytest.mark.parametrize("name", STORES)
def test_a_store(name: str, tmp_path: Path) -> None:
    """Files are loaded as others read them, and what was overwritten since it was listed is not."""
    chosen = [FormatCase(format=kind, codec=codec) for kind, codec in CASES[name]]
    with opened(name, tmp_path / "store") as store:
        assert failures_of(store, chosen, tmp_path / "loads", ROWS) == []
        (listed,) = staged_files(store.stage, chosen[0].folder, files=[chosen[0].name], files_max=9)
        store.put(listed.path, b"other bytes")
        with pytest.raises(Conflict, match="was overwritten"):
            store.stage.open().open(listed).read()
        with pytest.raises(Unknown):
            staged_files(store.stage, "", files=["nothing.csv"], files_max=9)


def test_the_slice_has_everything() -> None:
    pairs = [pair for chosen in CASES.values() for pair in chosen]
    assert {kind for kind, _ in pairs} == set(ALLOWED)
    assert {codec for _, codec in pairs} == {each for codecs in ALLOWED.values() for each in codecs}
    assert CASES.keys() == STORES.keys()
