"""Rejected commits are checked against the table before files are deleted."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.catalog import Catalog
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.types import LongType, NestedField

from frazil.lake.catalog.catalog import open_catalog
from frazil.lake.catalog.commit_check import LANDED
from frazil.settings import LakeConfig

NAME = "frazil.numbers"
ROWS = pa.table({"number": pa.array([1, 2, 3], pa.int64())})
commit_table = SqlCatalog.commit_table


def opened(folder: Path) -> Catalog:
    """Open the catalog with PyIceberg's own FileIO, which can write rows."""
    uri, writer = f"sqlite:///{folder}/catalog.db", "pyiceberg.io.pyarrow.PyArrowFileIO"
    return open_catalog(LakeConfig(catalog={"uri": uri, "py-io-impl": writer}), folder)


def create_table(catalog: Catalog) -> Table:
    catalog.create_namespace("frazil")
    schema = Schema(NestedField(1, "number", LongType(), required=False))
    return catalog.create_table(NAME, schema, properties={"commit.retry.num-retries": "0"})


def commit_twice(self: SqlCatalog, *arguments: Any) -> Any:
    """Commit as a gateway does that resends the request after it lost the first response."""
    commit_table(self, *arguments)
    return commit_table(self, *arguments)


def test_a_resent_commit_succeeds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with closing(opened(tmp_path)) as catalog:
        table = create_table(catalog)
        landed = LANDED.total()
        with monkeypatch.context() as patch:
            patch.setattr(SqlCatalog, "commit_table", commit_twice)
            table.append(ROWS)
        assert LANDED.total() == landed + 1
        assert catalog.load_table(NAME).scan().to_arrow() == ROWS
        table.append(ROWS)
        assert catalog.load_table(NAME).scan().to_arrow().num_rows == 2 * len(ROWS)


def test_a_real_conflict_fails_and_deletes_its_manifests(tmp_path: Path) -> None:
    with closing(opened(tmp_path)) as catalog:
        old = create_table(catalog)
        catalog.load_table(NAME).append(ROWS)
        before = set(tmp_path.rglob("*.avro"))
        with pytest.raises(CommitFailedException):
            old.append(ROWS)
        assert set(tmp_path.rglob("*.avro")) == before
        assert catalog.load_table(NAME).scan().to_arrow() == ROWS


def test_nothing_is_deleted_if_the_table_cannot_be_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(opened(tmp_path)) as catalog:
        table = create_table(catalog)

        with monkeypatch.context() as patch:

            def gone(self: SqlCatalog, *_: Any) -> Any:
                raise ConnectionError("gone")

            def commit_and_disconnect(self: SqlCatalog, *arguments: Any) -> Any:
                commit_table(self, *arguments)
                patch.setattr(SqlCatalog, "load_table", gone)
                raise CommitFailedException("conflict")

            patch.setattr(SqlCatalog, "commit_table", commit_and_disconnect)
            with pytest.raises(ConnectionError, match="gone"):
                table.append(ROWS)
        assert catalog.load_table(NAME).scan().to_arrow() == ROWS
