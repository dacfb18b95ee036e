"""The SQL shell, in a pseudo terminal, on a data folder without a node."""

from __future__ import annotations

import stat
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli import shop
from tests.cli.pseudo_terminal import Terminal
from tests.clients.node import Node

COLUMNS = 90
CTRL_C, CTRL_D, TAB = "\x03", "\x04", "\t"
PROMPT = "frazil> "

TRIES_MAX = 600


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The data folder of a stopped node."""
    folder = tmp_path_factory.mktemp("repl") / "data"
    with Node(folder, "--set", "lake.enabled=false") as node:
        shop.send(node)
        node.stop()
    return folder


@pytest.fixture(scope="module")
def state(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("state")


@pytest.fixture(scope="module")
def shell(folder: Path, state: Path) -> Iterator[Terminal]:
    """One shell for all tests, which each of them must leave usable."""
    command = [sys.executable, "-m", "frazil", "sql", "--data", str(folder)]
    env = {"XDG_STATE_HOME": str(state)}
    with Terminal(command, columns=COLUMNS, env=env) as shell:
        shell.read_until(PROMPT)
        yield shell


def run(shell: Terminal, text: str, expected: str = "\n") -> str:
    """Type a line and return the output up to `expected` and the next prompt."""
    shell.write(text + "\n")
    return shell.read_until(text, expected, PROMPT)


def test_statements_end_with_a_semicolon(shell: Terminal) -> None:
    """A statement may span lines, and a line may have several."""
    shell.write("SELECT count(*) AS n\n")
    shell.read_until("...> ")
    assert "│ 4 │" in run(shell, "FROM logs;", "1 row (")
    assert "│   2 │" in run(shell, "SELECT 1 AS one; SELECT 2 AS two;", "two │")


def test_commands_and_their_psql_aliases(shell: Terminal) -> None:
    """An unknown command is answered with a suggestion."""
    assert "spans" in run(shell, ".tables")
    assert "severity_number" in run(shell, r"\d logs")
    assert "did you mean .tables" in run(shell, ".tabels", "?")
    assert "expanded display is on" in run(shell, r"\x", "is on")
    assert "a │ 1" in run(shell, "SELECT 1 AS a;")
    run(shell, r".expanded auto", "is automatic")
    run(shell, ".format csv")
    assert "a,b\n1,2\n" in run(shell, "SELECT 1 AS a, 2 AS b;", "1,2")
    run(shell, ".format table")
    assert "table, json or csv" in run(shell, ".help", "Ctrl-D exits")


def test_a_result_above_the_limit_is_cut_with_a_note(shell: Terminal) -> None:
    run(shell, ".limit 2")
    output = run(shell, "SELECT body FROM logs;", ".limit off shows all")
    assert "first 2 rows; there are more" in output
    run(shell, ".limit off")
    assert "4 rows (" in run(shell, "SELECT body FROM logs;")


def test_the_shell_survives_errors(shell: Terminal) -> None:
    assert "no column bodi" in run(shell, "SELECT bodi FROM logs;", "did you mean")
    assert "│ 1 │" in run(shell, "SELECT 1 AS a;")


def test_wide_rows_are_expanded(shell: Terminal) -> None:
    output = run(shell, "SELECT * FROM spans LIMIT 2;")
    assert "─ row 2 ─" in output
    assert max(len(line) for line in output.splitlines()) <= COLUMNS


def test_tab_completes_columns_and_attributes(shell: Terminal) -> None:
    shell.write("SELECT severity_n" + TAB)
    shell.read_until("severity_number")
    shell.interrupt(PROMPT)
    shell.write("SELECT attributes['us" + TAB)
    shell.read_until("user']")
    shell.interrupt(PROMPT)


def test_ctrl_c_cancels_a_query_and_keeps_the_shell(shell: Terminal) -> None:
    shell.write(
        "SELECT sum(a.value * b.value) FROM generate_series(1, 1000000) AS a, "
        "generate_series(1, 1000000) AS b;\n"
    )
    pause = threading.Event()
    for _ in range(TRIES_MAX):
        if not shell.is_reading():  # a Ctrl-C before that would clear the line
            break
        pause.wait(0.05)
    assert not shell.is_reading()
    shell.write(CTRL_C)
    shell.read_until("cancelled", PROMPT)
    assert "│ 7 │" in run(shell, "SELECT 7 AS a;")


def test_exit_saves_the_history(shell: Terminal, state: Path) -> None:
    """In a private file. Must be the last test: the shell exits."""
    shell.write(CTRL_D)
    assert shell.wait() == 0
    history = state / "frazil" / "history"
    assert stat.S_IMODE(history.stat().st_mode) == 0o600
    lines = history.read_text().splitlines()
    assert "SELECT count(*) AS n FROM logs;" in lines
    assert ".tables" in lines
