"""The SQL shell, in a terminal of its own, over a folder that no node uses."""

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

LOOKS_MAX = 600


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a node has left."""
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
    """One shell for all tests: it must survive each of them."""
    command = [sys.executable, "-m", "frazil", "sql", "--data", str(folder)]
    env = {"XDG_STATE_HOME": str(state)}
    with Terminal(command, columns=COLUMNS, env=env) as shell:
        shell.read_until(PROMPT)
        yield shell


def ask(shell: Terminal, text: str, wanted: str = "\n") -> str:
    """Write a line, and give what came up to some text and the prompt behind it."""
    shell.write(text + "\n")
    return shell.read_until(text, wanted, PROMPT)


def test_statements_end_with_a_semicolon(shell: Terminal) -> None:
    """However many lines they have, and several may be on one."""
    shell.write("SELECT count(*) AS n\n")
    shell.read_until("...> ")
    assert "│ 4 │" in ask(shell, "FROM logs;", "1 row (")
    assert "│   2 │" in ask(shell, "SELECT 1 AS one; SELECT 2 AS two;", "two │")


def test_commands(shell: Terminal) -> None:
    """Ours, and those of psql; a wrong one is said, with the one that was meant."""
    assert "spans" in ask(shell, ".tables")
    assert "severity_number" in ask(shell, r"\d logs")
    assert "did you mean .tables" in ask(shell, ".tabels", "?")
    assert "expanded display is on" in ask(shell, r"\x", "is on")
    assert "a │ 1" in ask(shell, "SELECT 1 AS a;")
    ask(shell, r".expanded auto", "do not fit")
    ask(shell, ".format csv")
    assert "a,b\n1,2\n" in ask(shell, "SELECT 1 AS a, 2 AS b;", "1,2")
    ask(shell, ".format table")
    assert "table, json or csv" in ask(shell, ".help", "Ctrl-D leaves")


def test_rows_beyond_the_limit(shell: Terminal) -> None:
    """Are not shown, and that is said."""
    ask(shell, ".limit 2")
    shown = ask(shell, "SELECT body FROM logs;", ".limit off all")
    assert "the first 2 rows, there are more" in shown
    ask(shell, ".limit off")
    assert "4 rows (" in ask(shell, "SELECT body FROM logs;")


def test_errors_do_not_end_it(shell: Terminal) -> None:
    """The next statement works."""
    assert "no column bodi" in ask(shell, "SELECT bodi FROM logs;", "did you mean")
    assert "│ 1 │" in ask(shell, "SELECT 1 AS a;")


def test_lines_fit_the_terminal(shell: Terminal) -> None:
    """All columns of a table are one below the other where they do not fit beside."""
    shown = ask(shell, "SELECT * FROM spans LIMIT 2;")
    assert "─ row 2 ─" in shown
    assert max(len(line) for line in shown.splitlines()) <= COLUMNS


def test_completion(shell: Terminal) -> None:
    """Of columns, and of attributes that are there."""
    shell.write("SELECT severity_n" + TAB)
    shell.read_until("severity_number")
    shell.interrupt(PROMPT)
    shell.write("SELECT attributes['us" + TAB)
    shell.read_until("user']")
    shell.interrupt(PROMPT)


def test_ctrl_c_stops_a_query(shell: Terminal) -> None:
    """And nothing else."""
    shell.write(
        "SELECT sum(a.value * b.value) FROM generate_series(1, 1000000) AS a, "
        "generate_series(1, 1000000) AS b;\n"
    )
    waiting = threading.Event()
    for _ in range(LOOKS_MAX):
        if shell.has_child():  # it runs in a process of its own
            break
        waiting.wait(0.05)
    assert shell.has_child()
    shell.write(CTRL_C)
    shell.read_until("cancelled", PROMPT)
    assert "│ 7 │" in ask(shell, "SELECT 7 AS a;")


def test_leaving_keeps_the_history(shell: Terminal, state: Path) -> None:
    """In a file that nobody else reads. The last test: the shell is gone after it."""
    shell.write(CTRL_D)
    assert shell.wait() == 0
    history = state / "frazil" / "history"
    assert stat.S_IMODE(history.stat().st_mode) == 0o600
    lines = history.read_text().splitlines()
    assert "SELECT count(*) AS n FROM logs;" in lines
    assert ".tables" in lines
