"""The command: its verbs, and the exit codes of errors."""

from __future__ import annotations

import argparse
import importlib
import io
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
"""The exit code shells use for a program ended by Ctrl-C."""

VERBS = (
    "up",
    "demo",
    "doctor",
    "status",
    "sql",
    "apply",
    "upload",
    "connect",
    "tail",
    "trace",
    "services",
    "tables",
    "topics",
    "groups",
    "produce",
    "consume",
    "users",
    "subscribers",
    "repair",
    "flush",
    "maintain",
    "retention",
    "erase",
    "backup",
    "restore",
    "export",
    "import",
    "mcp",
    "appender",
    "pyspark",
    "grafana",
    "init",
    "config",
    "warm",
    "completion",
)
"""In the order of the help; each is a module of `commands`."""

MODULES = {"import": "import_"}
"""Verbs whose name is a Python keyword."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one verb and return its exit code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # Some init systems have a locale without a tick mark: "?" is better than an exception.
            stream.reconfigure(errors="replace")
    options = parser().parse_args(arguments)
    try:
        code = int(options.run(options))
        sys.stdout.flush()
        return code
    except Malformed as error:
        print(f"frazil: {error}", file=sys.stderr)
        return WRONG_USE
    except Held as error:
        hint = "; or use the node, with --url instead of --data" if hasattr(options, "url") else ""
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
    """Return whether the reader of standard output has gone, as `head` does.

    If so, discard the buffered rest, which Python would complain about at exit.
    """
    poll = select.poll()
    poll.register(sys.stdout, 0)
    is_broken = any(event & select.POLLERR for _, event in poll.poll(0))
    if is_broken:
        with Path(os.devnull).open("wb") as devnull:
            os.dup2(devnull.fileno(), sys.stdout.fileno())
    return is_broken


def parser() -> argparse.ArgumentParser:
    """Return the parser of the whole command line."""
    root = argparse.ArgumentParser(
        prog="frazil",
        description="Collect OpenTelemetry data durably, query it with SQL, keep it in Iceberg.",
        epilog="`frazil VERB --help` describes a verb.",
    )
    root.add_argument("--version", action=Version)
    verbs = root.add_subparsers(required=True, metavar="VERB", dest="verb")
    for name in VERBS:
        module = importlib.import_module(f"frazil.cli.commands.{MODULES.get(name, name)}")
        verb = verbs.add_parser(name, help=module.HELP, description=module.__doc__)
        module.add_arguments(verb)
        verb.set_defaults(run=module.run)
    return root
