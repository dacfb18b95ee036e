"""CREATE TABLE … CLONE, ALTER TABLE … CLUSTER BY and SET BLOOM."""

from __future__ import annotations

from contextlib import closing
from typing import Protocol

import pyarrow as pa

from frazil.definitions import (
    CloneTable,
    ClusterBy,
    SetBloom,
    StatementCall,
    StatementExecutor,
    done,
)
from frazil.lake import CloneSource, Lake, clone_table, cluster_by, open_catalog, set_bloom
from frazil.model import Clock, Rand


class LoadedNames(Protocol):
    """Knows the names of tables. `frazil.query.Engine` implements it."""

    def check_loaded_name(self, name: str) -> None:
        """Raise `Conflict` if no table with this name may be loaded from files."""


def register_loaded_tables(
    executor: StatementExecutor, lake: Lake, names: LoadedNames, *, clock: Clock, rand: Rand
) -> None:
    """Let `executor` carry out statements about tables of the lake."""

    def clone(call: StatementCall) -> pa.Table:
        statement = call.statement
        assert isinstance(statement, CloneTable)
        names.check_loaded_name(statement.name)
        source = CloneSource(name=statement.source, version=statement.version, time=statement.time)
        unique = f"{rand.getrandbits(128):032x}"
        with closing(open_catalog(lake.config, lake.data_folder)) as catalog:
            made = clone_table(
                catalog, lake.config, statement.name, source, unique=unique, clock=clock
            )
        lake.view.refresh([statement.name])
        lake.view.other_tables()
        return done(
            f"created table {statement.name} with {made.row_count} rows of snapshot "
            f"{made.snapshot_id} of {statement.source}"
        )

    def cluster(call: StatementCall) -> pa.Table:
        statement = call.statement
        assert isinstance(statement, ClusterBy)
        with closing(open_catalog(lake.config, lake.data_folder)) as catalog:
            cluster_by(catalog, lake.config, statement.table, statement.columns, clock=clock)
        order = ", ".join(statement.columns) or "no column"
        return done(f"new files of {statement.table} are sorted by {order}")

    def bloom(call: StatementCall) -> pa.Table:
        statement = call.statement
        assert isinstance(statement, SetBloom)
        with closing(open_catalog(lake.config, lake.data_folder)) as catalog:
            set_bloom(catalog, lake.config, statement.table, statement.columns, clock=clock)
        columns = ", ".join(statement.columns) or "no column"
        return done(f"new files of {statement.table} have a bloom filter on {columns}")

    executor.register(CloneTable, clone)
    executor.register(ClusterBy, cluster)
    executor.register(SetBloom, bloom)
