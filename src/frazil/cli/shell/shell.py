"""The shell of `frazil sql`: statements end with a semicolon, commands begin with a point."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Literal

from frazil.cli.shell.commands import COMMANDS, ExitShell, Settings, command_of
from frazil.cli.shell.completer import Completer
from frazil.cli.shell.history import LineHistory
from frazil.cli.terminal.colors import DIM, RED, Colors
from frazil.cli.terminal.text_width import safe, terminal_width
from frazil.cli.views.rows import TableStyle, pieces_of
from frazil.errors import FrazilError
from frazil.model import SystemClock
from frazil.results import Limits, is_blank, split_statements

if TYPE_CHECKING:
    from frazil.client import Client
    from frazil.embedded import Embedded

PROMPT, GOES_ON = "frazil> ", "   ...> "


class SqlShell:
    """Reads, asks, shows. Owned by the main thread, which Ctrl-C interrupts."""

    def __init__(
        self,
        node: Embedded | Client,
        *,
        engine: Literal["spark"] | None,
        timeout_s: float | None,
    ) -> None:
        self.settings = Settings()
        self._node = node
        self._engine = engine
        self._timeout_ms = None if timeout_s is None else max(1, round(timeout_s * 1000))
        self._paint = Colors.of(sys.stdout)
        self._clock = SystemClock()
        self._waiting = ""
        """What was written of a statement that has not ended."""

    def run(self) -> None:
        """Until .quit or Ctrl-D."""
        self.note("Statements end with ;  .help says what else there is, Tab completes.")
        words = Completer(self._node.ask)
        with LineHistory.open(words.complete):
            words.start()
            while True:
                try:
                    line = self._read()
                    if line is None:
                        return
                    self._take(line)
                except ExitShell:
                    return
                except KeyboardInterrupt:
                    self._waiting = ""
                    self.note("cancelled")

    def _read(self) -> str | None:
        """The next line; None when there will be none."""
        while True:
            try:
                return input(GOES_ON if self._waiting else PROMPT)
            except KeyboardInterrupt:
                self._waiting = ""
                print()
            except EOFError:
                print()
                return None

    def _take(self, line: str) -> None:
        if not self._waiting:
            if not line.strip():
                return
            command = command_of(line)
            if command is not None:
                LineHistory.remember(line)
                self._guarded(partial(COMMANDS[command.name].run, self, command.argument))
                return
        self._waiting += line + "\n"
        statements, rest = split_statements(self._waiting)
        if statements:
            LineHistory.remember(self._waiting[: len(self._waiting) - len(rest)])
        self._waiting = "" if is_blank(rest) else rest.lstrip()
        for statement in statements:
            if not self._guarded(partial(self.ask, statement)):
                return

    def _guarded(self, work: Callable[[], None]) -> bool:
        """Do something; what goes wrong is said, and the shell goes on."""
        try:
            work()
        except FrazilError as error:
            sys.stdout.flush()
            print(self._paint(f"error: {safe(str(error))}", RED))
            return False
        return True

    def ask(self, statement: str) -> None:
        """Run a statement and show its rows."""
        begun_ns = self._clock.monotonic_ns()
        settings = self.settings
        looks = TableStyle(
            columns=terminal_width(sys.stdout) if sys.stdout.isatty() else None,
            paint=self._paint,
            is_expanded=settings.is_expanded,
            has_timing=settings.has_timing,
        )
        limits = Limits(timeout_ms=self._timeout_ms, rows_max=settings.rows_max)
        with self._node.sql(statement, limits=limits, engine=self._engine) as result:
            for piece in pieces_of(result, settings.how, looks, self._clock, begun_ns):
                sys.stdout.buffer.write(piece)
                sys.stdout.buffer.flush()
            if result.is_cut:
                self.note(".limit 10000 shows more, .limit off all")

    def note(self, text: str) -> None:
        """Something that is no result."""
        print(self._paint(text, DIM))
