"""LakeTarget: an Iceberg table that files are loaded into."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa

from frazil.lake import (
    LoadChange,
    LoadedFile,
    LoadTable,
    LoadWriter,
    arrow_schema,
    commit_load,
    loaded_rows,
    plan_load,
)
from frazil.load.copy.columns import read_columns, table_columns
from frazil.load.copy.target import OpenRows, OpenWriter
from frazil.model import Clock
from frazil.settings import LakeConfig

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog
    from pyiceberg.table import Table

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class LakeTarget:
    """A `CopyTarget`."""

    plan: LoadTable
    catalog: Catalog
    lake: LakeConfig
    clock: Clock
    keyed: None = None

    @property
    def schema(self) -> pa.Schema:
        return read_columns(self.plan.schema)

    @property
    def ledger(self) -> pa.Table:
        return self.plan.ledger

    @property
    def is_new(self) -> bool:
        return self.plan.is_new

    def writer(self) -> OpenWriter:
        return partial(LoadWriter, self.plan.target())

    def rows(self, files: Sequence[LoadedFile]) -> OpenRows:
        return partial(loaded_rows, self.plan.target(), tuple(files))

    def commit(self, change: LoadChange) -> int | None:
        return commit_load(self.catalog, self.lake, self.plan, change, clock=self.clock)

    def discard(self, files: Sequence[LoadedFile]) -> None:
        for file in files:
            try:
                self.plan.io.delete(f"{self.plan.metadata.location}/{file.path}")
            except OSError:
                logger.info("a data file was left behind", extra={"path": file.path})


def plan_with_columns(table: Table, columns: pa.Schema) -> LoadTable:
    """Plan to load into a table with those of these columns added that it does not have."""
    known = {name.lower() for name in arrow_schema(table.schema()).names}
    new = [field for field in columns if field.name.lower() not in known]
    return plan_load(table, table_columns(pa.schema(new)))
