"""Fuzzes both doors with the same texts: queries, statements, and mutations of both.

reading door     rows or a clear error; no file of the data folder, and none beside it, changes
statements door  the text is a known statement, or it is refused; the engine is asked only about
                 views; no name or path leaves its folder
routing          what the parser of statements accepts is sent to the statements door
"""

from __future__ import annotations

import os
import re
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields
from hashlib import sha256
from pathlib import Path
from typing import Any, get_args

import pyarrow as pa

from frazil.definitions import (
    Audit,
    CreateView,
    Definitions,
    Show,
    StagePath,
    Statement,
    StatementCall,
    StatementExecutor,
    done,
    is_statement,
    parse_statements,
)
from frazil.disk import RealDisk
from frazil.embedded import Embedded
from frazil.errors import FrazilError, Rejected
from frazil.model import SystemClock
from frazil.query import register_views
from tests.fuzz.sql import OUTCOMES, opened, outcome_of
from tests.fuzz.sql_texts import corpus, fuzzed_texts

EXAMPLES_MAX = 5
EXAMPLE_LENGTH = 300
CHECK_EVERY = 1000
"""Texts at the reading door between two looks at the files."""
STATEMENTS = (
    *("CREATE STAGE s URL='s3://b/p/' CONNECTION=name FILE_FORMAT=(TYPE=NDJSON)",),
    *("LIST @s/2026/", "DESCRIBE @s/2026/", "VALIDATE '@s/a b/' PATTERN='.*'", "SHOW VIEWS"),
    "COPY INTO t (a BIGINT, b DECIMAL(10, 2)) FROM @s/2026/ FILES=('x', 'd/y') "
    "ON_ERROR=SKIP_FILE_5 FILE_FORMAT=(TYPE=CSV HEADER=false) "
    "PARTITION BY (day(time), region) FORCE=true",
    "COPY INTO @s/out/ FROM (SELECT body FROM logs) OVERWRITE=true",
    "COPY (SELECT * FROM logs) TO 'stolen.csv' STORED AS CSV",
    "CREATE PIPE p SCHEDULE '1 minute' AS COPY INTO t FROM @s/",
    "CREATE PIPE p CRON '*/5 1-3 * jan mon' RETRIES=2 AS COPY INTO t FROM (SELECT a FROM @s/x) "
    "VALIDATE (NOT EMPTY, UNIQUE (a), RANGE a BETWEEN -1 AND 9, CHECK (SELECT a FROM new_rows))",
    "CREATE EXTERNAL TABLE a STORED AS PARQUET LOCATION '@s/archive/' PARTITIONED BY (year)",
    "CREATE EXTERNAL TABLE a STORED AS CSV LOCATION '/etc/passwd'",
    "CREATE VIEW v AS SELECT *, upper(body) AS loud FROM logs",
    "CREATE OR REPLACE VIEW w AS WITH x AS (SELECT 1 AS a) SELECT a FROM x",
    "CREATE TABLE b CLONE a FOR SYSTEM_VERSION AS OF 42",
    "CREATE TABLE logs2 AS SELECT * FROM logs",
    "ALTER TABLE t CLUSTER BY (a, b)",
    "INSERT INTO logs SELECT * FROM logs",
    *("DROP VIEW IF EXISTS v", "DROP TABLE logs", "PAUSE PIPE p", "EXECUTE PIPE p"),
    *("SET datafusion.execution.batch_size = 1", "SHOW DEFINITIONS", "SHOW EXTERNAL TABLES"),
)


def run(count: int, seed: int) -> dict[str, object]:
    """Send `count` texts to both doors. Same seed, same texts."""
    with tempfile.TemporaryDirectory() as scratch:
        data, elsewhere = Path(scratch, "data"), Path(scratch, "elsewhere")
        data.mkdir()
        elsewhere.mkdir()
        before = Path.cwd()
        os.chdir(elsewhere)  # a relative path of a text would end up here
        try:
            with opened(data, seed) as (_, embedded):
                fuzz = StatementFuzz(embedded, data, elsewhere, Path(scratch, "other"))
                texts = [*STATEMENTS * 20, *corpus()]
                for number, text in enumerate(fuzzed_texts(count, seed, texts), 1):
                    fuzz.step(text)
                    if number % CHECK_EVERY == 0:
                        fuzz.check_files()
                fuzz.check_files()
        finally:
            os.chdir(before)
    return {
        "texts": count,
        "read": dict(fuzz.read),
        "executed": dict(fuzz.executed),
        "disagreement_count": len(fuzz.disagreements),
        "disagreements": fuzz.disagreements[:EXAMPLES_MAX],
    }


class StatementFuzz:
    """A node whose reading door must change nothing, and beside it, over the same engine but
    another folder, a door of statements of which every handler is watched."""

    def __init__(self, embedded: Embedded, data: Path, elsewhere: Path, other: Path) -> None:
        self._embedded = embedded
        self._folders = (data / "definitions", data / "dashboards", elsewhere)
        self._engine = WatchedEngine(embedded.engine)
        other.mkdir()
        disk, clock = RealDisk(str(other)), SystemClock()
        self._door = StatementExecutor(Definitions(disk), Audit(disk, clock), clock)
        register_views(self._door, self._engine)  # type: ignore[arg-type]
        for kind in get_args(Statement):
            if kind not in (CreateView, Show) and kind.__name__ != "Drop":
                self._door.register(kind, self._carry_out)
        for name in ("stage", "pipe", "external_table", "table"):
            self._door.register_drop(name, self._carry_out)
        self._files = self._digests()
        self.read: Counter[str] = Counter()
        self.executed: Counter[str] = Counter()
        self.disagreements: list[str] = []

    def step(self, text: str) -> None:
        """Send one text to both doors."""
        outcome, message = outcome_of(self._embedded, text)
        self.read[outcome] += 1
        if outcome not in OUTCOMES:
            self._disagree(text, f"reading door: {outcome}: {message[:EXAMPLE_LENGTH]}")
        if is_statement(text) and outcome == "ok":
            self._disagree(text, "a statement was answered by the reading door")
        with self._engine.watched() as asked:
            kind = self._execute(text)
        self.executed[kind] += 1
        if asked and kind not in ("CreateView", "Show"):
            self._disagree(text, f"{kind} reached the engine: {asked}")

    def _execute(self, text: str) -> str:
        """Return the kind of the statement, or why it was refused."""
        try:
            parsed = parse_statements(text)
        except Rejected:
            parsed = ()
        except Exception as error:  # noqa: BLE001 # any other error is a disagreement
            self._disagree(text, f"parser: {error!r}")
        if parsed and not is_statement(text):
            self._disagree(text, "a statement is not sent to its door")
        kind = type(parsed[0].statement).__name__ if len(parsed) == 1 else "refused"
        try:
            self._door.execute(text, who="fuzz")
        except FrazilError as error:
            return kind if parsed else type(error).__name__
        except Exception as error:  # noqa: BLE001 # any other error is a disagreement
            self._disagree(text, f"statements door: {error!r}")
        if not parsed:
            self._disagree(text, "carried out without being parsed")
        for stored in self._door.definitions.all():
            self._door.definitions.drop(stored.kind, stored.name)
        return kind

    def _carry_out(self, call: StatementCall) -> pa.Table:
        for each in fields(call.statement):
            for value in _leaves(getattr(call.statement, each.name)):
                parts = value.path.split("/") if isinstance(value, StagePath) else []
                name = value.stage if isinstance(value, StagePath) else "s"
                if ".." in parts or "" in parts[:-1] or not re.fullmatch(r"[a-z_]\w{0,62}", name):
                    self._disagree(call.parsed.text, f"a path leaves its stage: {value}")
        return done("ok")

    def check_files(self) -> None:
        """Compare the files that only a definition could change."""
        files = self._digests()
        if files != self._files:
            self._disagree("", f"files changed: {sorted(files.items() ^ self._files.items())}")
            self._files = files

    def _digests(self) -> dict[str, str]:
        paths = [path for folder in self._folders for path in folder.rglob("*") if path.is_file()]
        return {str(path): sha256(path.read_bytes()).hexdigest() for path in paths}

    def _disagree(self, text: str, why: str) -> None:
        self.disagreements.append(f"{why}: {text[:EXAMPLE_LENGTH]!r}")


class WatchedEngine:
    """An engine that notes what it is asked."""

    def __init__(self, engine: Any) -> None:
        self._engine = engine
        self._asked: list[str] = []

    @contextmanager
    def watched(self) -> Iterator[list[str]]:
        self._asked.clear()
        yield self._asked

    def check_view(self, name: str, query: str) -> pa.Schema:
        self._asked.append(f"check_view {name}")
        return self._engine.check_view(name, query)

    def view_problem(self, name: str) -> str | None:
        self._asked.append(f"view_problem {name}")
        problem: str | None = self._engine.view_problem(name)
        return problem


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, tuple):
        for each in value:
            yield from _leaves(each)
    else:
        yield value
