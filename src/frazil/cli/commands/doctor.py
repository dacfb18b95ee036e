"""Check everything a node needs, before it starts or while it runs. Each problem comes with one
line that fixes it: a command, a setting, or a manual step. Exits with 1 if a check fails."""

from __future__ import annotations

import argparse
import json
import os
import sys
from typing import TYPE_CHECKING

from frazil.cli.commands.up import add_node_flags, overrides_of
from frazil.cli.options import add_json

if TYPE_CHECKING:
    from frazil.doctor import Finding

HELP = "Check everything a node needs, with a fix for each problem"
FAILED = 1
COLORS = {"ok": "32", "note": "36", "warning": "33", "failure": "31"}
LEVEL_WIDTH = max(map(len, COLORS))
CHECK_WIDTH = 15


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_node_flags(parser)
    parser.add_argument("--spark", action="store_true", help="also start Spark and run a job")
    add_json(parser, "print one JSON object per finding")


def run(options: argparse.Namespace) -> int:
    from frazil.config import load
    from frazil.doctor import examine
    from frazil.model import SystemClock

    counts = dict.fromkeys(COLORS, 0)
    is_colored = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
    for finding in examine(
        lambda: load(options.config, overrides_of(options), assignments=options.assignments),
        clock=SystemClock(),
        environment=os.environ,
        with_spark=options.spark,
    ):
        counts[finding.level] += 1
        line = json.dumps(finding.to_dict()) if options.json else _lines(finding, is_colored)
        print(line, flush=True)
    if not options.json:
        totals = (f"{count} {_plural(level, count)}" for level, count in counts.items() if count)
        print(f"\n{', '.join(totals)}")
    return FAILED if counts["failure"] else 0


def _lines(finding: Finding, is_colored: bool) -> str:
    level = finding.level.ljust(LEVEL_WIDTH)
    if is_colored:
        level = f"\x1b[{COLORS[finding.level]}m{level}\x1b[0m"
    line = f"{level}  {finding.check.ljust(CHECK_WIDTH)}  {finding.found}"
    if finding.fix is None:
        return line
    flag = f"   (or {finding.fix.flag})" if finding.fix.flag else ""
    kind = finding.fix.kind.rjust(CHECK_WIDTH)
    if is_colored:
        kind = f"\x1b[1m{kind}\x1b[0m"
    return f"{line}\n{' ' * LEVEL_WIDTH}  {kind}  {finding.fix.text}{flag}"


def _plural(level: str, count: int) -> str:
    return level if level == "ok" or count == 1 else f"{level}s"
