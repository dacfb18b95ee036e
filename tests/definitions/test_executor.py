"""Statements are carried out by their handler, noted before and after, and refused without one."""

from __future__ import annotations

import pyarrow as pa
import pytest

from frazil.definitions import (
    Audit,
    CreateView,
    Definitions,
    StatementCall,
    StatementExecutor,
    done,
    drop_definition,
    parse_statement,
)
from frazil.definitions.audit import PATH, masked
from frazil.errors import Malformed, Rejected, Unavailable
from tests.sim.clock import SimClock
from tests.sim.disk import SimDisk


def executor_over(disk: SimDisk) -> StatementExecutor:
    clock = SimClock()
    definitions = Definitions(disk)
    executor = StatementExecutor(definitions, Audit(disk, clock), clock)

    def create_view(call: StatementCall) -> pa.Table:
        assert isinstance(call.statement, CreateView)
        if "missing" in call.statement.query:
            raise Rejected("no table missing")
        definitions.put(call.parsed)
        return done("created")

    executor.register(CreateView, create_view)
    executor.register_drop("view", lambda call: drop_definition(definitions, call))
    return executor


def test_statements_are_carried_out_and_noted() -> None:
    """The audit says who did what with which outcome; statements that only read are not in it."""
    executor = executor_over(SimDisk())
    executor.execute("CREATE VIEW v AS SELECT 1", who="alice")
    rows = executor.execute("SHOW VIEWS", who="bob").to_pylist()
    assert rows == [
        {
            "kind": "view",
            "name": "v",
            "definition": "CREATE VIEW v AS SELECT 1",
            "problem": None,
        }
    ]
    with pytest.raises(Rejected, match="no table"):
        executor.execute("CREATE VIEW w AS SELECT * FROM missing", who="bob")
    executor.execute("DROP VIEW v", who="carol")
    executor.execute("DROP VIEW IF EXISTS v", who="carol")
    assert executor.definitions.all() == []
    noted = [(e.id, e.who, e.head, e.outcome, e.message) for e in executor.audit.entries()]
    assert noted == [
        (1, "alice", "CREATE VIEW V", "ok", ""),
        (2, "bob", "CREATE VIEW W", "rejected", "no table missing"),
        (3, "carol", "DROP VIEW V", "ok", ""),
        (4, "carol", "DROP VIEW IF", "ok", ""),
    ]


@pytest.mark.parametrize(
    "text", ["COPY INTO t FROM @s", "LIST @s", "DROP STAGE s", "DROP TABLE logs", "PAUSE PIPE p"]
)
def test_a_statement_without_a_handler_is_refused(text: str) -> None:
    """It is not passed on, and not noted."""
    executor = executor_over(SimDisk())
    with pytest.raises(Rejected, match="cannot carry out"):
        executor.execute(text, who="x")
    with pytest.raises(Malformed):
        executor.execute(f"{text}; {text}", who="x")
    assert executor.audit.entries() == []


def test_nothing_runs_that_cannot_be_noted() -> None:
    """On a full disk a statement is refused before it does anything."""
    disk = SimDisk()
    executor = executor_over(disk)
    executor.execute("CREATE VIEW v AS SELECT 1", who="x")
    disk.faults.capacity_bytes = 0
    with pytest.raises(Unavailable):
        executor.execute("DROP VIEW v", who="x")
    assert [d.name for d in executor.definitions.all()] == ["v"]


def test_an_interrupted_statement_stays_in_the_audit() -> None:
    """A crash between begin and end leaves an entry without an outcome, and a line that was cut
    hides no other."""
    disk = SimDisk()
    audit = Audit(disk, SimClock())
    audit.begin("x", "COPY INTO", "COPY INTO t FROM @s")
    file = disk.open(PATH, "edit")
    file.append([b'{"id": 2, "ti'])
    file.close()
    again = Audit(disk, SimClock())
    entry = again.begin("y", "DROP VIEW", "DROP VIEW v")
    again.end(entry, "ok", "", 5)
    assert [(e.id, e.outcome) for e in again.entries()] == [(1, ""), (2, "ok")]


def test_the_audit_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """A full file becomes the old one; ids go on."""
    monkeypatch.setattr("frazil.definitions.audit.FILE_BYTES_MAX", 100_000)
    disk = SimDisk()
    audit = Audit(disk, SimClock())
    for _ in range(30):
        entry = audit.begin("x", "CREATE VIEW", "x" * 8000)
    sizes = [len(disk.data(path)) for path in disk.files()]
    assert max(sizes) < 110_000 and len(sizes) == 2
    assert Audit(disk, SimClock()).begin("x", "y", "z").id == entry.id + 1


@pytest.mark.parametrize(
    "text",
    [
        "CREATE STAGE s URL='s3://key:hunter2@bucket/'",
        "CREATE STAGE s URL='s3://b' SECRET_KEY='hunter2'",
        "x password = hunter2, y",
        'x "aws_secret_access_key": "hunter2"',
        "https://x/?sig=1&signature=hunter2&y",
    ],
)
def test_credentials_are_masked(text: str) -> None:
    """A statement that is refused for its credentials leaves none in the audit."""
    assert "hunter2" not in masked(text)
    assert masked("CREATE VIEW v AS SELECT 'a' FROM t") == "CREATE VIEW v AS SELECT 'a' FROM t"


def test_masking_long_texts_is_fast() -> None:
    """No text makes the patterns take more than linear time."""
    for text in ("a-" * 32_000, "a" * 64_000, "password" * 8000, "x://" * 16_000, " =" * 32_000):
        assert masked(text)


def test_stored_text_is_what_was_written() -> None:
    """Comments and spacing inside a definition are kept."""
    disk = SimDisk()
    executor = executor_over(disk)
    text = "CREATE  VIEW v AS\n  SELECT 1 -- one\n"
    executor.execute(text, who="x")
    stored = disk.data("definitions/view/v.sql").decode()
    assert stored == "CREATE VIEW v AS\n  SELECT 1;\n"
    assert parse_statement(stored).definition == "CREATE VIEW v AS\n  SELECT 1"
