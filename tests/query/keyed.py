"""Keyed tables for tests of SQL and statements: a real folder, stepped by hand."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from frazil.definitions import Audit, Definitions, StatementExecutor
from frazil.disk import RealDisk
from frazil.hot import Piece
from frazil.log import Log
from frazil.model import KiB, Rand, SystemClock
from frazil.model.arrow import TABLES
from frazil.query import Engine, register_tables, register_views
from frazil.settings import LogConfig, QueryConfig, TablesConfig
from frazil.tables import KeyedTables, Operation

SMALL = TablesConfig(seal_bytes=4 * KiB, read_bytes=2 * KiB)


@dataclass
class KeyedNode:
    """Keyed tables, the engine over them, and the door of statements."""

    log: Log
    tables: KeyedTables
    engine: Engine
    statements: StatementExecutor

    def execute(self, text: str) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = self.statements.execute(text, who="test").to_pylist()
        return rows

    def sql(self, text: str) -> list[tuple[Any, ...]]:
        return self.engine.sql(text).fetchall()

    def write(
        self, name: str, operation: Operation, rows: Sequence[Mapping[str, object]]
    ) -> dict[int, int]:
        """Write rows and apply them."""
        fields = [f for f in self.tables.definition(name).schema if f.name in rows[0]]
        columns = [pa.array([row[f.name] for row in rows], f.type) for f in fields]
        token = self.tables.write(name, operation, pa.table(columns, [f.name for f in fields]))
        self.tables.wait(name, token, 10)
        return token


@contextmanager
def keyed_node(
    folder: Path,
    pieces: Mapping[str, Sequence[Piece]] | None = None,
    config: TablesConfig = SMALL,
) -> Iterator[KeyedNode]:
    """Open a folder without ports and threads."""
    disk, clock = RealDisk(str(folder)), SystemClock()
    hot = {name: tuple(some) for name, some in (pieces or {}).items()}
    statements = StatementExecutor(Definitions(disk), Audit(disk, clock), clock)
    with Log.open(disk, LogConfig(), clock=clock, rand=Rand(1)) as log:
        tables = KeyedTables(disk, log, config, clock=clock)
        try:
            with Engine.open(
                lambda: hot,
                TABLES,
                QueryConfig(),
                clock,
                definitions=statements.definitions,
                audit=statements.audit,
                keyed=tables,
            ) as engine:
                register_views(statements, engine)
                register_tables(statements, engine, tables, rand=Rand(2))
                yield KeyedNode(log, tables, engine, statements)
        finally:
            tables.close()
