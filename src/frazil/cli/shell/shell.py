"""SqlShell: the shell of `frazil sql`. Statements end with `;`, commands begin with a dot."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Literal

from frazil.cli.shell.commands import COMMANDS, ExitShell, Settings, command_of
from frazil.cli.shell.completer import Completer
from frazil.cli.shell.doors import start
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

PROMPT, CONTINUED = "frazil> ", "   ...> "


class SqlShell:
    """Reads lines, runs statements and prints rows. Owned by the main thread, for Ctrl-C."""

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
        self._pending = ""
        """The beginning of an unfinished statement."""

    def run(self) -> None:
        """Run until .quit or Ctrl-D."""
        self.note("Statements end with ;  .help lists commands, Tab completes.")
        completer = Completer(self._node.ask)
        with LineHistory.open(completer.complete):
            completer.start()
            while True:
                try:
                    line = self._read()
                    if line is None:
                        return
                    self._handle(line)
                except ExitShell:
                    return
                except KeyboardInterrupt:
                    self._pending = ""
                    self.note("cancelled")

    def _read(self) -> str | None:
        """Return the next line; None at the end of input."""
        while True:
            try:
                return input(CONTINUED if self._pending else PROMPT)
            except KeyboardInterrupt:
                self._pending = ""
                print()
            except EOFError:
                print()
                return None

    def _handle(self, line: str) -> None:
        if not self._pending:
            if not line.strip():
                return
            command = command_of(line)
            if command is not None:
                LineHistory.remember(line)
                self._guarded(partial(COMMANDS[command.name].run, self, command.argument))
                return
        self._pending += line + "\n"
        statements, rest = split_statements(self._pending)
        if statements:
            LineHistory.remember(self._pending[: len(self._pending) - len(rest)])
        self._pending = "" if is_blank(rest) else rest.lstrip()
        for statement in statements:
            if not self._guarded(partial(self.query, statement)):
                return

    def _guarded(self, work: Callable[[], None]) -> bool:
        """Run `work` and print its error, if any. Returns whether it succeeded."""
        try:
            work()
        except FrazilError as error:
            sys.stdout.flush()
            print(self._paint(f"error: {safe(str(error))}", RED))
            return False
        return True

    def query(self, statement: str) -> None:
        """Run a statement and print its rows."""
        start_ns = self._clock.monotonic_ns()
        settings = self.settings
        style = TableStyle(
            columns=terminal_width(sys.stdout) if sys.stdout.isatty() else None,
            paint=self._paint,
            is_expanded=settings.is_expanded,
            has_timing=settings.has_timing,
        )
        limits = Limits(timeout_ms=self._timeout_ms, rows_max=settings.rows_max)
        with start(self._node, statement, limits=limits, engine=self._engine) as result:
            for piece in pieces_of(result, settings.format_name, style, self._clock, start_ns):
                sys.stdout.buffer.write(piece)
                sys.stdout.buffer.flush()
            if result.is_cut:
                self.note(".limit 10000 shows more; .limit off shows all")

    def note(self, text: str) -> None:
        """Print a note that is not a result."""
        print(self._paint(text, DIM))
