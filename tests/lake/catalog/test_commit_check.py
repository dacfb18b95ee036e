"""A commit that was done, and is called refused: nothing that the table names is removed."""

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
from frazil.lake.config import LakeConfig

NAME = "frazil.numbers"
ROWS = pa.table({"number": pa.array([1, 2, 3], pa.int64())})
commit_table = SqlCatalog.commit_table


def opened(folder: Path) -> Catalog:
    """As we open it, but for who writes: these rows are written by PyIceberg itself."""
    uri, writer = f"sqlite:///{folder}/catalog.db", "pyiceberg.io.pyarrow.PyArrowFileIO"
    return open_catalog(LakeConfig(catalog={"uri": uri, "py-io-impl": writer}), folder)


def made(catalog: Catalog) -> Table:
    catalog.create_namespace("frazil")
    schema = Schema(NestedField(1, "number", LongType(), required=False))
    return catalog.create_table(NAME, schema, properties={"commit.retry.num-retries": "0"})


def asked_twice(self: SqlCatalog, *given: Any) -> Any:
    """Somebody on the way has lost the first answer."""
    commit_table(self, *given)
    return commit_table(self, *given)


def test_what_was_done_is_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with closing(opened(tmp_path)) as catalog:
        table = made(catalog)
        with monkeypatch.context() as patch:
            patch.setattr(SqlCatalog, "commit_table", asked_twice)
            table.append(ROWS)
        assert catalog.load_table(NAME).scan().to_arrow() == ROWS
        table.append(ROWS)
        assert catalog.load_table(NAME).scan().to_arrow().num_rows == 2 * len(ROWS)


def test_what_was_refused_is_refused(tmp_path: Path) -> None:
    """And its manifests go, as nobody needs them."""
    with closing(opened(tmp_path)) as catalog:
        old = made(catalog)
        catalog.load_table(NAME).append(ROWS)
        before = set(tmp_path.rglob("*.avro"))
        with pytest.raises(CommitFailedException):
            old.append(ROWS)
        assert set(tmp_path.rglob("*.avro")) == before
        assert catalog.load_table(NAME).scan().to_arrow() == ROWS


def test_nobody_knows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It was refused, and then nobody could be asked: it may have been done, so nothing goes."""
    with closing(opened(tmp_path)) as catalog:
        table = made(catalog)

        with monkeypatch.context() as patch:

            def gone(self: SqlCatalog, *_: Any) -> Any:
                raise ConnectionError("gone")

            def refused_and_gone(self: SqlCatalog, *given: Any) -> Any:
                commit_table(self, *given)
                patch.setattr(SqlCatalog, "load_table", gone)
                raise CommitFailedException("as if it were not done")

            patch.setattr(SqlCatalog, "commit_table", refused_and_gone)
            with pytest.raises(ConnectionError, match="gone"):
                table.append(ROWS)
        assert catalog.load_table(NAME).scan().to_arrow() == ROWS
