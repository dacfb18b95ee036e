"""ProgressLine: a bar for people at a terminal, plain lines elsewhere, nothing for programs."""

from __future__ import annotations

import io

import pytest

from frazil.cli.terminal.progress import ProgressLine, amount, duration
from tests.sim.clock import SimClock


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True

    def fileno(self) -> int:
        raise OSError("no such thing")


def test_a_bar_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """One line with share, rate and time left, redrawn, which stays at the end."""
    monkeypatch.setenv("TERM", "xterm")
    clock, terminal = SimClock(), Terminal()
    clock.advance(1000)
    with ProgressLine("import", total=4000, unit="B", clock=clock, stream=terminal) as progress:
        progress.update(0)
        clock.advance(2000)
        progress.update(1000, "7 records")
        progress.update(1001)
        progress.say("a word")
        clock.advance(2000)
        progress.update(4000)
    drawn = terminal.getvalue().split("\r\x1b[K")
    assert (
        drawn[1]
        == f"import  {'█' * 6}{'░' * 18}  25%  1.0 kB of 4.0 kB, 500 B/s  6 s left  7 records"[:79]
    )
    assert drawn[2] == "a word\n" + "import  " + "█" * 24 + " 100%  4.0 kB of 4.0 kB, 1.0 kB/s"
    assert terminal.getvalue().endswith("\n")


def test_plain_lines_elsewhere() -> None:
    """One every few seconds; none for quick work."""
    clock, stream = SimClock(), io.StringIO()
    with ProgressLine("flush", total=100, unit="rows", clock=clock, stream=stream) as progress:
        for done in range(0, 100, 10):
            progress.update(done)
            clock.advance(1000)
    lines = stream.getvalue().splitlines()
    assert lines == [
        "flush  50%  50 rows of 100 rows, 10 rows/s  5 s left",
        "flush  90%  90 rows of 100 rows, 9 rows/s  1 s left",
    ]
    quick = io.StringIO()
    with ProgressLine("flush", total=100, clock=clock, stream=quick) as progress:
        progress.update(100)
    assert quick.getvalue() == ""


def test_quiet_prints_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    clock, terminal = SimClock(), Terminal()
    with ProgressLine("demo", clock=clock, is_quiet=True, stream=terminal) as progress:
        clock.advance(60_000)
        progress.update(1, "note")
        progress.say("hello")
    assert terminal.getvalue() == ""


@pytest.mark.parametrize(
    ("number", "unit", "text"),
    [
        (0, "B", "0 B"),
        (999, "rows", "999 rows"),
        (1234, "B", "1.2 kB"),
        (310_000, "rows", "310 k rows"),
        (5.5e15, "B", "5500 TB"),
    ],
)
def test_amounts(number: float, unit: str, text: str) -> None:
    assert amount(number, unit) == text


def test_durations() -> None:
    assert [duration(seconds) for seconds in (0.4, 59.4, 61, 3599.6, 3729)] == [
        "0 s",
        "59 s",
        "1:01",
        "1:00:00",
        "1:02:09",
    ]
