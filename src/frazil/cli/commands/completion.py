"""Print a shell completion script. For bash put `source <(frazil completion bash)` into ~/.bashrc;
for zsh put `eval "$(frazil completion zsh)"` into ~/.zshrc after `compinit`; for fish run
`frazil completion fish > ~/.config/fish/completions/frazil.fish`."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

HELP = "Print a shell completion script"
SHELLS = ("bash", "zsh", "fish")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", choices=SHELLS, help="the shell to complete for")


def run(options: argparse.Namespace) -> int:
    import shtab

    from frazil.cli.entry_point import parser

    paths = {"FILE": shtab.FILE, "SCRIPT": shtab.FILE, "DIR": shtab.DIRECTORY}
    root = parser()
    for action in _actions(root):
        if action.metavar in paths:
            action.complete = paths[action.metavar]  # type: ignore[attr-defined]
    print(shtab.complete(root, shell=options.shell))
    return 0


def _actions(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    for action in parser._actions:  # noqa: SLF001 argparse has no public list of them
        yield action
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001
            for below in action.choices.values():
                yield from _actions(below)
