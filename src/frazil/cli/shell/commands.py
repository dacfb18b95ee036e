"""Commands of the SQL shell: dot commands, and aliases from psql."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from frazil.errors import Malformed

if TYPE_CHECKING:
    from frazil.cli.shell.shell import SqlShell

ROWS_MAX = 1000
"""Default row limit; `.limit` changes it."""
FORMATS = ("table", "json", "csv")
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
"""quit and exit also work without a dot."""


class ExitShell(Exception):
    """The user wants to leave the shell."""


@dataclass(slots=True, kw_only=True)
class Settings:
    """How results are displayed, for this session."""

    format_name: str = "table"
    is_expanded: bool | None = None
    """None: if not all columns fit."""
    has_timing: bool = True
    rows_max: int | None = ROWS_MAX


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A command as typed."""

    name: str
    argument: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandSpec:
    """A known command."""

    usage: str
    help: str
    run: Callable[[SqlShell, str], None]


def command_of(line: str) -> Command | None:
    """Parse a line; None if it is SQL."""
    word, _, argument = line.strip().rstrip(";").strip().partition(" ")
    lower = word.lower()
    if lower in ALIASES and (lower[0] in ".\\" or not argument):
        return Command(name=ALIASES[lower], argument=argument.strip())
    if word[:1] not in (".", "\\"):
        return None
    name = lower[1:]
    return Command(name=name if name in COMMANDS else "unknown", argument=argument.strip() or word)


def _tables(shell: SqlShell, _: str) -> None:
    shell.query(
        "SELECT table_name AS table, table_type AS kind FROM information_schema.tables "
        "WHERE table_schema = 'public' ORDER BY kind, table"
    )


def _schema(shell: SqlShell, argument: str) -> None:
    if not argument or argument.startswith((".", "\\")):
        _tables(shell, "")
        return
    name = argument.strip('"').replace('"', '""')
    shell.query(f'DESCRIBE "{name}"')


def _format(shell: SqlShell, argument: str) -> None:
    if argument not in FORMATS:
        raise Malformed(
            f".format takes one of {', '.join(FORMATS)}; for Arrow and Parquet use "
            "frazil sql --output rows.parquet '…'"
        )
    shell.settings.format_name = argument


def _timing(shell: SqlShell, argument: str) -> None:
    shell.settings.has_timing = _switch(argument, shell.settings.has_timing, ".timing")
    shell.note(f"timing is {'on' if shell.settings.has_timing else 'off'}")


def _expanded(shell: SqlShell, argument: str) -> None:
    settings = shell.settings
    if argument == "auto":
        settings.is_expanded = None
    else:
        settings.is_expanded = _switch(argument, bool(settings.is_expanded), ".expanded")
    word = {True: "on", False: "off", None: "automatic"}[settings.is_expanded]
    shell.note(f"expanded display is {word}")


def _switch(argument: str, current: bool, name: str) -> bool:
    if argument in ("on", "off"):
        return argument == "on"
    if argument and not argument.startswith((".", "\\")):
        raise Malformed(f"{name} is on or off, not {argument!r}")
    return not current


def _limit(shell: SqlShell, argument: str) -> None:
    if argument == "off":
        shell.settings.rows_max = None
    elif argument.isdecimal() and int(argument) > 0:
        shell.settings.rows_max = int(argument)
    else:
        raise Malformed(".limit takes a number above 0, or off")


def _quit(_: SqlShell, __: str) -> None:
    raise ExitShell


def _help(_: SqlShell, __: str) -> None:
    width = max(len(command.usage) for command in COMMANDS.values())
    for command in COMMANDS.values():
        if command.help:
            print(f"  {command.usage:{width}}  {command.help}")
    print("\nTab completes; Ctrl-C cancels a query or clears the line; Ctrl-D exits.")


def _unknown(_: SqlShell, argument: str) -> None:
    name = argument.split()[0]
    near = difflib.get_close_matches(name.lstrip(".\\"), COMMANDS, n=1)
    raise Malformed(
        f"unknown command {name}; "
        + (f"did you mean .{near[0]}?" if near else ".help lists the commands")
    )


COMMANDS: dict[str, CommandSpec] = {
    "tables": CommandSpec(usage=".tables", help=r"list tables (\dt)", run=_tables),
    "schema": CommandSpec(usage=".schema TABLE", help=r"list columns of a table (\d)", run=_schema),
    "format": CommandSpec(usage=".format FORMAT", help="table, json or csv", run=_format),
    "expanded": CommandSpec(
        usage=".expanded [on|off|auto]", help=r"one line per column (\x)", run=_expanded
    ),
    "limit": CommandSpec(usage=".limit N|off", help=f"maximum rows ({ROWS_MAX})", run=_limit),
    "timing": CommandSpec(usage=".timing [on|off]", help="display query times", run=_timing),
    "help": CommandSpec(usage=".help", help="list commands", run=_help),
    "quit": CommandSpec(usage=".quit", help=r"exit (\q, Ctrl-D)", run=_quit),
    "unknown": CommandSpec(usage="", help="", run=_unknown),
}
