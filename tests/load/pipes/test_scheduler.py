"""Pipes that run: real threads, real loads, without Spark."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from frazil.definitions import changes_to, wanted_definitions
from frazil.errors import Conflict, FrazilError, Malformed, Overloaded, Unknown
from frazil.lake import JobGroup, TaskRunner
from frazil.model import Rand
from frazil.tables import new_definition
from tests.load.loading import run_inline
from tests.load.pipes.piping import open_piping, until


class Stuck:
    """Tasks that wait until their load is cancelled, or until `go` is set."""

    def __init__(self) -> None:
        self.has_begun = threading.Event()
        self.go = threading.Event()

    def __call__(self, group: JobGroup) -> TaskRunner:
        def do(function: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
            self.has_begun.set()
            until(lambda: group.is_cancelled or self.go.is_set())
            group.check()
            return run_inline(function, items)

        return do


def test_new_files_are_loaded(tmp_path: Path) -> None:
    """Each once, after each other and together; a run without new files is not in the history."""
    with open_piping(tmp_path) as piping:
        piping.put("a.ndjson", 1, 2)
        piping.execute("CREATE PIPE p ON NEW FILES AS COPY INTO t FROM @s")
        until(lambda: piping.outcomes() == ["ok"])
        piping.put("b.ndjson", 3)
        piping.put("c.ndjson", 4)
        until(lambda: sum(run.rows for run in piping.history.runs()) == 4)
        assert piping.numbers() == [1, 2, 3, 4]
        shown = piping.shown()
        assert (shown["state"], shown["last_outcome"], shown["schedule"]) == (
            "waiting",
            "ok",
            "ON NEW FILES",
        )
        assert shown["next_run"] > shown["last_success"] >= shown["last_run"]
        count = len(piping.outcomes())
        piping.execute("PAUSE PIPE p")
        assert piping.shown()["state"] == "paused"
        piping.put("d.ndjson", 5)
        assert piping.execute("EXECUTE PIPE p")[0]["rows"] == 1
        assert len(piping.outcomes()) == count + 1
    with open_piping(tmp_path) as piping:
        assert piping.shown()["state"] == "paused", "also after a restart"
        piping.put("e.ndjson", 6)
        piping.execute("RESUME PIPE p")
        until(lambda: piping.numbers() == [1, 2, 3, 4, 5, 6])


def test_files_that_are_skipped_start_no_more_runs(tmp_path: Path) -> None:
    with open_piping(tmp_path) as piping:
        (piping.files / "bad.ndjson").write_text("bad\n")
        piping.execute(
            "CREATE PIPE p ON NEW FILES AS COPY INTO t (n BIGINT) FROM @s ON_ERROR=SKIP_FILE"
        )
        until(lambda: piping.outcomes() == ["ok"])
        piping.put("good.ndjson", 1)
        until(lambda: piping.outcomes() == ["ok", "ok"])
        before = piping.shown()["next_run"]
        until(lambda: piping.shown()["next_run"] != before)
        assert piping.outcomes() == ["ok", "ok"]


def test_a_failing_pipe(tmp_path: Path) -> None:
    """Nothing is loaded while a condition does not hold; it is retried, and shown."""
    with open_piping(tmp_path) as piping:
        piping.put("a.ndjson", 1, 1)
        piping.execute(
            "CREATE PIPE p SCHEDULE '1 second' AS COPY INTO t FROM @s VALIDATE (UNIQUE (n))"
        )
        until(lambda: piping.outcomes().count("failed") >= 2)
        shown = piping.shown()
        assert "UNIQUE (n): found n = 1" in shown["last_error"]
        assert shown["failures"] >= 2 and shown["state"] in ("failing", "running")
        assert set(piping.outcomes()) <= {"failed", "running"}
        piping.execute("PAUSE PIPE p")
        until(lambda: piping.shown()["state"] == "paused")
        with pytest.raises(Malformed, match="VALIDATE failed"):
            piping.execute("EXECUTE PIPE p")
        piping.put("a.ndjson", 1, 2)
        piping.execute("RESUME PIPE p")
        until(lambda: piping.outcomes()[-1] == "ok" and piping.shown()["failures"] == 0)
        assert piping.numbers() == [1, 2]


def test_one_run_at_a_time_and_drop_cancels_it(tmp_path: Path) -> None:
    stuck = Stuck()
    with open_piping(tmp_path, stuck) as piping:
        piping.put("a.ndjson", 1)
        piping.execute("CREATE PIPE p SCHEDULE '1 second' AS COPY INTO t FROM @s")
        assert stuck.has_begun.wait(60)
        with pytest.raises(Conflict, match="pipe p is running"):
            piping.execute("EXECUTE PIPE p")
        assert (piping.shown()["state"], piping.outcomes()) == ("running", ["running"])
        piping.execute("CREATE PIPE q SCHEDULE '1 hour' AS COPY INTO u FROM @s")
        until(lambda: piping.outcomes() == ["running", "running"])
        piping.execute("CREATE PIPE r SCHEDULE '1 hour' AS COPY INTO v FROM @s")
        with pytest.raises(Overloaded, match="2 pipes are running"):
            piping.execute("EXECUTE PIPE r")
        assert piping.execute("DROP PIPE p") == [{"status": "dropped pipe p"}]
        assert piping.outcomes()[0] == "cancelled"
        piping.execute("CREATE OR REPLACE PIPE q SCHEDULE '2 hours' AS COPY INTO u FROM @s")
        stuck.go.set()
        until(lambda: piping.outcomes().count("ok") == 2)
        assert {row["name"] for row in piping.execute("SHOW PIPES")} == {"q", "r"}
        piping.execute("DROP PIPE IF EXISTS p")
        with pytest.raises(Unknown, match="no pipe p"):
            piping.execute("DROP PIPE p")


def test_a_stop_interrupts_and_the_next_start_goes_on(tmp_path: Path) -> None:
    stuck = Stuck()
    with open_piping(tmp_path, stuck) as piping:
        piping.put("a.ndjson", 1)
        piping.execute("CREATE PIPE p SCHEDULE '1 second' AS COPY INTO t FROM @s")
        assert stuck.has_begun.wait(60)
    assert [run.outcome for run in piping.history.runs()] == ["interrupted"]
    with open_piping(tmp_path) as piping:
        until(lambda: piping.outcomes()[:2] == ["interrupted", "ok"])
        assert piping.numbers() == [1]


def test_without_a_scheduler_pipes_run_by_statements(tmp_path: Path) -> None:
    """`frazil.open` defines and runs them; a node with the folder runs them when they are due."""
    with open_piping(tmp_path, is_scheduling=False) as piping:
        piping.put("a.ndjson", 1)
        piping.execute("CREATE PIPE p SCHEDULE '1 second' AS COPY INTO t FROM @s")
        assert piping.execute("EXECUTE PIPE p") == [
            {"pipe": "p", "run_id": 1, "outcome": "ok", "files": 1, "rows": 1, "errors": 0}
        ]
        assert piping.shown()["next_run"] is None


def test_a_pipe_fills_a_keyed_table(tmp_path: Path) -> None:
    """It sees which files the table has, and refuses what keyed tables do not take."""
    with open_piping(tmp_path) as piping:
        piping.tables.create(new_definition("k", [("n", "int64")], ["n"], rand=Rand(1)))
        with pytest.raises(Malformed, match="leave out the list"):
            piping.execute("CREATE PIPE p ON NEW FILES AS COPY INTO k (n BIGINT) FROM @s")
        piping.put("a.ndjson", 1, 2)
        piping.execute("CREATE PIPE p ON NEW FILES AS COPY INTO k FROM @s VALIDATE (UNIQUE (n))")
        until(lambda: piping.outcomes() == ["ok"])
        piping.put("b.ndjson", 2, 3)
        until(lambda: piping.outcomes() == ["ok", "ok"])
        piping.tables.catch_up()
        rows = piping.tables.view("k").get_many([1, 2, 3, 4]).to_pylist()
        assert rows == [{"n": 1}, {"n": 2}, {"n": 3}]
        assert [run.rows for run in piping.history.runs()] == [2, 2]


def test_pipes_are_applied_from_files(tmp_path: Path) -> None:
    """What `frazil apply` does: created after their stage, replaced if changed, dropped first."""
    stage = f"CREATE STAGE x URL='file://{tmp_path}/in' FILE_FORMAT=(TYPE=NDJSON);"
    pipe = "CREATE PIPE a CRON '0 3 * * *' AS\n  COPY INTO t FROM @x;"
    with open_piping(tmp_path) as piping:
        piping.execute("DROP STAGE s")

        def apply(*files: str) -> list[str]:
            wanted = wanted_definitions({str(at): text for at, text in enumerate(files)})
            rows = piping.execute("SHOW DEFINITIONS")
            existing = {(row["kind"], row["name"]): row["definition"] for row in rows}
            changes = changes_to(wanted, existing, prune=True)
            for change in changes:
                piping.execute(change.statement)
            return [change.title for change in changes]

        assert apply(pipe, stage) == ["create stage x", "create pipe a"]
        assert apply(pipe, stage) == []
        assert apply(pipe.replace("3", "4"), stage) == ["replace pipe a"]
        assert piping.shown()["schedule"] == "CRON '0 4 * * *'"
        assert apply() == ["drop pipe a", "drop stage x"]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("CREATE PIPE p ON NEW FILES AS COPY INTO t FROM @nowhere", "there is no stage nowhere"),
        ("PAUSE PIPE x", "there is no pipe x"),
        ("EXECUTE PIPE x", "there is no pipe x"),
    ],
)
def test_what_cannot_be_done_is_refused(tmp_path: Path, text: str, why: str) -> None:
    with open_piping(tmp_path, is_scheduling=False) as piping:
        with pytest.raises(FrazilError, match=why):
            piping.execute(text)
        assert piping.execute("SHOW PIPES") == []
