"""The command: which verbs there are, and what becomes of their errors."""

from __future__ import annotations

import argparse
import importlib
import os
import select
import sys
from collections.abc import Sequence
from pathlib import Path

from frazil.cli.version import Version
from frazil.errors import FrazilError, Held, Malformed

FAILED = 1
WRONG_USE = 2
INTERRUPTED = 130
"""What shells call a program that Ctrl-C has ended."""

VERBS = (
    "up",
    "demo",
    "doctor",
    "status",
    "sql",
    "tail",
    "trace",
    "topics",
    "subscribers",
    "repair",
    "flush",
    "maintain",
    "export",
    "import",
    "appender",
    "pyspark",
    "init",
    "config",
    "warm",
    "completion",
)
"""In the order of the help; each is a module here."""

MODULES = {"import": "import_"}
"""Verbs that no module can be called after."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one verb. 0 is well, 1 is a failure, 2 is a wrong use or wrong settings."""
    options = parser().parse_args(arguments)
    try:
        code = int(options.run(options))
        sys.stdout.flush()
        return code
    except Malformed as error:
        print(f"frazil: {error}", file=sys.stderr)
        return WRONG_USE
    except Held as error:
        hint = "; or ask the node, with --url instead of --data" if hasattr(options, "url") else ""
        print(f"frazil: {error}{hint}", file=sys.stderr)
        return FAILED
    except FrazilError as error:
        print(f"frazil: {error}", file=sys.stderr)
        return FAILED
    except KeyboardInterrupt:
        print("frazil: interrupted", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        if not _output_is_broken():
            raise
        return FAILED


def _output_is_broken() -> bool:
    """Has whoever reads enough, as `head` has? Then forget what is left: Python would complain
    about it once more when it ends."""
    asked = select.poll()
    asked.register(sys.stdout, 0)
    is_broken = any(event & select.POLLERR for _, event in asked.poll(0))
    if is_broken:
        with Path(os.devnull).open("wb") as nothing:
            os.dup2(nothing.fileno(), sys.stdout.fileno())
    return is_broken


def parser() -> argparse.ArgumentParser:
    """What the command understands."""
    made = argparse.ArgumentParser(prog="frazil", description="Telemetry, durable at once.")
    made.add_argument("--version", action=Version)
    verbs = made.add_subparsers(required=True, metavar="VERB", dest="verb")
    for name in VERBS:
        module = importlib.import_module(f"frazil.cli.commands.{MODULES.get(name, name)}")
        verb = verbs.add_parser(name, help=module.HELP, description=module.__doc__)
        module.add_arguments(verb)
        verb.set_defaults(run=module.run)
    return made
