"""Show the retention rules and what they will remove when, or remove all expired rows now: from the
tables, their older snapshots, the hot tier and the log. Maintenance removes them by itself every
hour, and keeps snapshots that queries may still use for lake.maintain_keep_hours."""

from __future__ import annotations

import argparse
import json

from frazil.cli.connection import add_where, opened
from frazil.cli.options import add_json
from frazil.cli.terminal.wait import run_with_progress
from frazil.cli.views.removal import print_previews, print_report, print_rules

HELP = "Show the retention rules, or remove expired rows now"
INCOMPLETE = 1


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_where(parser)
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--dry-run", action="store_true", help="count the rows that have expired")
    how.add_argument("--apply", action="store_true", help="remove all expired rows now")
    add_json(parser, "print one JSON object")


def run(options: argparse.Namespace) -> int:
    with opened(options) as node:
        if options.apply:
            report = run_with_progress(
                "retention", node.apply_retention, None, is_quiet=options.json
            )
            if options.json:
                print(json.dumps(report.to_dict()))
            else:
                print_report(report)
            return 0 if report.is_complete else INCOMPLETE
        if options.dry_run:
            previews = run_with_progress(
                "retention", node.preview_retention, None, is_quiet=options.json
            )
            if options.json:
                print(json.dumps({"tables": [each.to_dict() for each in previews]}))
            else:
                print_previews(previews)
            return 0
        rules = node.retention_rules()
    if options.json:
        print(json.dumps({"rules": [rule.to_dict() for rule in rules]}))
    elif rules:
        print_rules(rules)
    else:
        print('No retention rules, so rows are kept forever. Example: [retention] logs = "30d"')
    return 0
