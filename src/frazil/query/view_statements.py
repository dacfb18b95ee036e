"""CREATE VIEW and DROP VIEW, carried out by an engine."""

from __future__ import annotations

from functools import partial

import pyarrow as pa

from frazil.definitions import (
    CreateView,
    StatementCall,
    StatementExecutor,
    StoredDefinition,
    done,
    drop_definition,
)
from frazil.query.engine import Engine


def register_views(executor: StatementExecutor, engine: Engine) -> None:
    """Let `executor` carry out the statements of views."""

    def create(call: StatementCall) -> pa.Table:
        statement = call.statement
        assert isinstance(statement, CreateView)
        executor.definitions.check_new(statement)
        columns = engine.check_view(statement.name, statement.query)
        executor.definitions.put(call.parsed)
        return done(f"created view {statement.name} with {len(columns.names)} columns")

    def problem_of(stored: StoredDefinition) -> str | None:
        return engine.view_problem(stored.name)

    executor.register(CreateView, create)
    executor.register_drop("view", partial(drop_definition, executor.definitions))
    executor.register_problem("view", problem_of)
