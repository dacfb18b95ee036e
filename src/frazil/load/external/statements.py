"""CREATE EXTERNAL TABLE and DROP EXTERNAL TABLE."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Protocol

import pyarrow as pa

from frazil.definitions import (
    CreateExternalTable,
    Drop,
    StatementCall,
    StatementExecutor,
    done,
    drop_definition,
)
from frazil.lake import TaskRunner
from frazil.load.external.tables import ExternalTables
from frazil.results import CancelToken

Tasks = Callable[[CancelToken], AbstractContextManager[TaskRunner]]
"""What infers columns."""


class NameCheck(Protocol):
    """Knows the names of tables. `frazil.query.Engine` implements it."""

    def check_external_name(self, name: str) -> None:
        """Raise `Conflict` if no external table may have this name."""


def register_external(
    executor: StatementExecutor, tables: ExternalTables, names: NameCheck, tasks: Tasks
) -> None:
    """Let `executor` carry out the statements of external tables."""

    def create(call: StatementCall) -> pa.Table:
        statement = call.statement
        assert isinstance(statement, CreateExternalTable)
        executor.definitions.check_new(statement)
        names.check_external_name(statement.name)
        with tasks(call.cancel_token) as do:
            count = tables.infer(statement, call.parsed.definition, do)
        executor.definitions.put(call.parsed)
        return done(f"created external table {statement.name} with {count} columns")

    def drop(call: StatementCall) -> pa.Table:
        assert isinstance(call.statement, Drop)
        dropped = drop_definition(executor.definitions, call)
        tables.drop(call.statement.name)
        return dropped

    executor.register(CreateExternalTable, create)
    executor.register_drop("external_table", drop)
    executor.register_problem("external_table", lambda stored: tables.problem(stored.name))
