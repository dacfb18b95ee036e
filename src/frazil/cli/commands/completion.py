"""Print a script that lets a shell complete verbs, flags and their values. For bash put
`source <(frazil completion bash)` into ~/.bashrc; for zsh the same into ~/.zshrc; for fish
`frazil completion fish > ~/.config/fish/completions/frazil.fish`."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass, field

from frazil.cli.commands.completion_scripts import SCRIPTS

HELP = "a script that lets a shell complete what can be written"
FILES, FOLDERS = ("FILE", "SCRIPT"), ("DIR",)
"""What is written for a value in the help, when it is a file or a folder."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Flag:
    """One thing that can be written behind a verb."""

    names: tuple[str, ...]
    """None where only its value is written."""
    help: str = ""
    takes_value: bool = False
    choices: tuple[str, ...] = ()
    is_file: bool = False
    is_folder: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Verb:
    """A verb, and what can be written behind it."""

    name: str
    help: str
    flags: tuple[Flag, ...] = field(default=())


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", choices=tuple(SCRIPTS), help="which one")


def run(options: argparse.Namespace) -> int:
    """Print the script."""
    from frazil.cli.entry_point import parser

    print(SCRIPTS[options.shell](verbs_of(parser())), end="")
    return 0


def verbs_of(parser: argparse.ArgumentParser) -> list[Verb]:
    """What a parser understands."""
    return [
        Verb(name=name, help=help_text, flags=tuple(_flags(verb)))
        for name, help_text, verb in _subparsers(parser)
    ]


def _subparsers(
    parser: argparse.ArgumentParser,
) -> Iterator[tuple[str, str, argparse.ArgumentParser]]:
    for action in parser._actions:  # noqa: SLF001 # argparse has no other way to look
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001
            helps = {each.dest: each.help or "" for each in action._choices_actions}  # noqa: SLF001
            for name, verb in action.choices.items():
                yield name, helps.get(name, ""), verb


def _flags(parser: argparse.ArgumentParser) -> Iterator[Flag]:
    """Its flags and values; those of verbs below it as well, with their names."""
    for action in parser._actions:  # noqa: SLF001 # argparse has no other way to look
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001
            yield Flag(names=(), takes_value=True, choices=tuple(action.choices))
            continue
        metavar = action.metavar if isinstance(action.metavar, str) else ""
        yield Flag(
            names=tuple(action.option_strings),
            help=(action.help or "").replace("%%", "%"),
            takes_value=action.nargs != 0,
            choices=tuple(map(str, action.choices or ())),
            is_file=metavar in FILES,
            is_folder=metavar in FOLDERS,
        )
    seen = {name for action in parser._actions for name in action.option_strings}  # noqa: SLF001
    for _, _, below in _subparsers(parser):
        for flag in _flags(below):
            if not seen & set(flag.names):
                seen |= set(flag.names)
                yield flag
