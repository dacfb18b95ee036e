"""Commands of the SQL shell: those that begin with a point, and what fingers know from psql."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from frazil.errors import Malformed

if TYPE_CHECKING:
    from frazil.cli.shell.shell import SqlShell

ROWS_SHOWN = 1000
"""More than anybody reads; whoever wants more says so."""
SHOWN_FORMATS = ("table", "json", "csv")
ALIASES = {
    "\\d": "schema",
    "\\dt": "tables",
    "\\q": "quit",
    "\\x": "expanded",
    "\\?": "help",
    "\\h": "help",
    "\\timing": "timing",
    ".exit": "quit",
    "quit": "quit",
    "exit": "quit",
}
"""Also without a point, for those who want to leave."""


class ExitShell(Exception):
    """The user wants to leave the shell."""


@dataclass(slots=True, kw_only=True)
class Settings:
    """How results are shown, until the shell ends."""

    how: str = "table"
    is_expanded: bool | None = None
    """None: when columns do not fit beside each other."""
    has_timing: bool = True
    rows_max: int | None = ROWS_SHOWN


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """What was asked for."""

    name: str
    argument: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandSpec:
    """A command that there is."""

    usage: str
    help: str
    run: Callable[[SqlShell, str], None]


def command_of(line: str) -> Command | None:
    """The command in a line; None when it is SQL. `Malformed` when there is no such command."""
    word, _, argument = line.strip().rstrip(";").strip().partition(" ")
    lower = word.lower()
    if lower in ALIASES and (lower[0] in ".\\" or not argument):
        return Command(name=ALIASES[lower], argument=argument.strip())
    if word[:1] not in (".", "\\"):
        return None
    name = lower[1:]
    return Command(name=name if name in COMMANDS else "unknown", argument=argument.strip() or word)


def _tables(repl: SqlShell, _: str) -> None:
    repl.ask(
        "SELECT table_name AS table, table_type AS kind FROM information_schema.tables "
        "WHERE table_schema = 'public' ORDER BY kind, table"
    )


def _schema(repl: SqlShell, argument: str) -> None:
    if not argument or argument.startswith((".", "\\")):
        _tables(repl, "")
        return
    name = argument.strip('"').replace('"', '""')
    repl.ask(f'DESCRIBE "{name}"')


def _format(repl: SqlShell, argument: str) -> None:
    if argument not in SHOWN_FORMATS:
        raise Malformed(
            f".format takes one of {', '.join(SHOWN_FORMATS)}; for Arrow and Parquet use "
            "frazil sql --output rows.parquet '…'"
        )
    repl.settings.how = argument


def _timing(repl: SqlShell, argument: str) -> None:
    repl.settings.has_timing = _switch(argument, repl.settings.has_timing, ".timing")
    repl.note(f"timing is {'on' if repl.settings.has_timing else 'off'}")


def _expanded(repl: SqlShell, argument: str) -> None:
    settings = repl.settings
    if argument == "auto":
        settings.is_expanded = None
    else:
        settings.is_expanded = _switch(argument, bool(settings.is_expanded), ".expanded")
    word = {True: "on", False: "off", None: "used when columns do not fit"}[settings.is_expanded]
    repl.note(f"expanded display is {word}")


def _switch(argument: str, before: bool, name: str) -> bool:
    if argument in ("on", "off"):
        return argument == "on"
    if argument and not argument.startswith((".", "\\")):
        raise Malformed(f"{name} is on or off, not {argument!r}")
    return not before


def _limit(repl: SqlShell, argument: str) -> None:
    if argument == "off":
        repl.settings.rows_max = None
    elif argument.isdecimal() and int(argument) > 0:
        repl.settings.rows_max = int(argument)
    else:
        raise Malformed(".limit takes a number of rows above 0, or off")


def _quit(_: SqlShell, __: str) -> None:
    raise ExitShell


def _help(_: SqlShell, __: str) -> None:
    width = max(len(known.usage) for known in COMMANDS.values())
    for known in COMMANDS.values():
        if known.help:
            print(f"  {known.usage:{width}}  {known.help}")
    print("\nTab completes; Ctrl-C stops a query or clears what is written; Ctrl-D leaves.")


def _unknown(_: SqlShell, argument: str) -> None:
    name = argument.split()[0]
    near = difflib.get_close_matches(name.lstrip(".\\"), COMMANDS, n=1)
    raise Malformed(
        f"there is no command {name}; "
        + (f"did you mean .{near[0]}?" if near else ".help lists those there are")
    )


COMMANDS: dict[str, CommandSpec] = {
    "tables": CommandSpec(usage=".tables", help=r"which tables there are (\dt)", run=_tables),
    "schema": CommandSpec(usage=".schema TABLE", help=r"the columns of a table (\d)", run=_schema),
    "format": CommandSpec(usage=".format FORMAT", help="table, json or csv", run=_format),
    "expanded": CommandSpec(
        usage=".expanded [on|off|auto]", help=r"a line for each column (\x)", run=_expanded
    ),
    "limit": CommandSpec(usage=".limit N|off", help=f"rows to show ({ROWS_SHOWN})", run=_limit),
    "timing": CommandSpec(usage=".timing [on|off]", help="how long a query took", run=_timing),
    "help": CommandSpec(usage=".help", help="this", run=_help),
    "quit": CommandSpec(usage=".quit", help=r"leave (\q, Ctrl-D)", run=_quit),
    "unknown": CommandSpec(usage="", help="", run=_unknown),
}
