"""StatementExecutor: one statement in, rows out.

    text ─> parse ─> audit: begins ─> the handler of its kind ─> audit: ended ─> rows

Each kind of statement has one handler, registered by the room that carries it out. A statement
without a handler is refused: it is never passed on to anything else.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field

import pyarrow as pa

from frazil.definitions.audit import Audit, AuditEntry
from frazil.definitions.parser import ParsedStatement, parse_statement
from frazil.definitions.statements import (
    Drop,
    InsertRows,
    Pause,
    Resume,
    Show,
    Statement,
    is_reading,
    words_of,
)
from frazil.definitions.store import Definitions, StoredDefinition
from frazil.errors import FrazilError, Rejected, Unavailable, reason_of
from frazil.model import NS_PER_MS, Clock
from frazil.results import CancelToken

logger = logging.getLogger(__name__)

OK = "ok"
AUDITED_ROWS_CHARS = 200
"""Of an INSERT or UPSERT with VALUES, in the audit."""
DONE_SCHEMA = pa.schema([pa.field("status", pa.string(), nullable=False)])
SHOW_SCHEMA = pa.schema(
    [
        pa.field("kind", pa.string(), nullable=False),
        pa.field("name", pa.string(), nullable=False),
        pa.field("definition", pa.string(), nullable=False),
        pa.field("problem", pa.string()),
    ]
)


@dataclass(frozen=True, slots=True, kw_only=True)
class StatementCall:
    """A statement that is to be carried out, and by whom."""

    parsed: ParsedStatement
    who: str
    cancel_token: CancelToken = field(default_factory=CancelToken)

    @property
    def statement(self) -> Statement:
        return self.parsed.statement


StatementHandler = Callable[[StatementCall], pa.Table]
"""Carries out one kind of statement; returns rows. Called in a thread."""


class StatementExecutor:
    """Carries out statements. Handlers are registered at the start; any thread may execute."""

    def __init__(self, definitions: Definitions, audit: Audit, clock: Clock) -> None:
        self.definitions = definitions
        self.audit = audit
        self._clock = clock
        self._handlers: dict[type[Statement], StatementHandler] = {}
        self._droppers: dict[str, StatementHandler] = {}
        self._pausers: dict[str, StatementHandler] = {}
        self._resumers: dict[str, StatementHandler] = {}
        self._problems: dict[str, Callable[[StoredDefinition], str | None]] = {}
        self._shows: dict[str, StatementHandler] = {}
        self.register(Show, self._show)

    def register(self, kind: type[Statement], handler: StatementHandler) -> None:
        """Let `handler` carry out statements of one kind."""
        assert kind not in self._handlers, f"{kind.__name__} has one handler"
        self._handlers[kind] = handler

    def register_drop(self, kind: str, handler: StatementHandler) -> None:
        """Let `handler` carry out DROP of one kind of thing."""
        assert kind not in self._droppers, f"DROP of a {kind} has one handler"
        self._droppers[kind] = handler

    def register_pause(self, kind: str, handler: StatementHandler) -> None:
        """Let `handler` carry out PAUSE of one kind of thing."""
        self._pausers[kind] = handler

    def register_resume(self, kind: str, handler: StatementHandler) -> None:
        """Let `handler` carry out RESUME of one kind of thing."""
        self._resumers[kind] = handler

    def register_show(self, kind: str, handler: StatementHandler) -> None:
        """Let `handler` carry out SHOW of one kind of thing, which has more to show than its
        definition."""
        self._shows[kind] = handler

    def wrap_drop(
        self, kind: str, wrap: Callable[[StatementHandler | None], StatementHandler]
    ) -> None:
        """Let a handler carry out DROP of one kind of thing, which may leave some of them to the
        handler that was registered before."""
        self._droppers[kind] = wrap(self._droppers.get(kind))

    def register_problem(
        self, kind: str, problem_of: Callable[[StoredDefinition], str | None]
    ) -> None:
        """Let SHOW report what is wrong with a definition beyond its text, such as a view whose
        table is gone."""
        self._problems[kind] = problem_of

    def execute(self, text: str, *, who: str, cancel_token: CancelToken | None = None) -> pa.Table:
        """Carry out one statement and return its rows. `Malformed` if it is none, `Rejected` if
        this node cannot carry it out."""
        parsed = parse_statement(text)
        handler = self._handler(parsed.statement)
        call = StatementCall(parsed=parsed, who=who, cancel_token=cancel_token or CancelToken())
        if is_reading(parsed.statement):
            return handler(call)
        begin_ns = self._clock.monotonic_ns()
        entry = self.audit.begin(who, _head(parsed.text), _audited(parsed))
        outcome, message = "failed", "internal error; see the log of the node"
        try:
            rows = handler(call)
            outcome, message = OK, ""
        except FrazilError as error:
            outcome, message = reason_of(error), str(error)
            raise
        finally:
            duration_ms = (self._clock.monotonic_ns() - begin_ns) // NS_PER_MS
            self._end(entry, outcome, message, duration_ms)
        return rows

    def _end(self, entry: AuditEntry, outcome: str, message: str, duration_ms: int) -> None:
        """Note the end of a statement. It has ended whether or not that can be noted."""
        try:
            self.audit.end(entry, outcome, message, duration_ms)
        except Unavailable as error:
            logger.warning("the end of a statement is not in the audit", extra={"reason": error})

    def _handler(self, statement: Statement) -> StatementHandler:
        if isinstance(statement, Drop):
            handler = self._droppers.get(statement.kind)
        elif isinstance(statement, Pause):
            handler = self._pausers.get(statement.kind)
        elif isinstance(statement, Resume):
            handler = self._resumers.get(statement.kind)
        else:
            handler = self._handlers.get(type(statement))
        if handler is None:
            raise Rejected(f"this node cannot carry out {_name(statement)}: it has no part for it")
        return handler

    def _show(self, call: StatementCall) -> pa.Table:
        assert isinstance(call.statement, Show)
        if call.statement.kind in self._shows:
            return self._shows[call.statement.kind](call)
        rows = [
            {
                "kind": words_of(each.kind).lower(),
                "name": each.name,
                "definition": each.text,
                "problem": self._problem(each),
            }
            for each in self.definitions.all(call.statement.kind)
        ]
        return pa.Table.from_pylist(rows, SHOW_SCHEMA)

    def _problem(self, stored: StoredDefinition) -> str | None:
        if stored.error is not None or stored.kind not in self._problems:
            return stored.error
        return self._problems[stored.kind](stored)


def drop_definition(definitions: Definitions, call: StatementCall) -> pa.Table:
    """Carry out DROP of a thing that consists of its definition only."""
    statement = call.statement
    assert isinstance(statement, Drop) and statement.kind != "table"
    if statement.if_exists and definitions.find(statement.kind, statement.name) is None:
        return done(f"there is no {words_of(statement.kind).lower()} {statement.name}")
    definitions.drop(statement.kind, statement.name)
    return done(f"dropped {words_of(statement.kind).lower()} {statement.name}")


def done(status: str) -> pa.Table:
    """Return the row of a statement that has no rows of its own."""
    return pa.Table.from_pylist([{"status": status}], DONE_SCHEMA)


def _audited(parsed: ParsedStatement) -> str:
    """Return the text for the audit. It is no copy of the data: of the rows of an INSERT it has the
    first characters only."""
    statement = parsed.statement
    if not isinstance(statement, InsertRows) or not statement.rows:
        return parsed.text
    if len(parsed.text) <= AUDITED_ROWS_CHARS:
        return parsed.text
    return f"{parsed.text[:AUDITED_ROWS_CHARS]}… ({len(statement.rows)} rows)"


def _head(text: str) -> str:
    return " ".join(text.split()[:3]).upper()[:40]


def _name(statement: Statement) -> str:
    """`CopyIntoTable` becomes `copy into table`."""
    if isinstance(statement, Drop | Pause | Resume):
        return f"{type(statement).__name__.upper()} {statement.kind.replace('_', ' ').upper()}"
    name = type(statement).__name__
    return "".join(f" {c}" if c.isupper() else c.upper() for c in name).strip()
