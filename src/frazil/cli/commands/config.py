"""Show effective settings and where each comes from."""

from __future__ import annotations

import argparse
import json

from frazil.cli.options import add_config, add_data, add_json, folder_overrides

HELP = "Show effective settings and where each comes from"
WIDTH = 44
"""Most settings are shorter, so that the notes are aligned."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    verbs = parser.add_subparsers(required=True, metavar="WHAT", dest="what")
    show = verbs.add_parser("show", help="Show effective settings", description=_show.__doc__)
    add_config(show)
    add_data(show, "data folder")
    show.add_argument("--origin", action="store_true", help="show where each comes from")
    show.add_argument("--changed", action="store_true", help="omit defaults")
    add_json(show, "print one JSON object per setting, with its origin")
    reference = verbs.add_parser(
        "reference", help="Print the reference of all settings, in Markdown"
    )
    add_json(reference, "print one JSON object per setting")


def run(options: argparse.Namespace) -> int:
    return _show(options) if options.what == "show" else _reference(options)


def _show(options: argparse.Namespace) -> int:
    """Print effective settings as TOML. Secrets are redacted."""
    from frazil.config import effective_settings, read, toml_line

    loaded = read(options.config, folder_overrides(options), assignments=options.assignments)
    for setting in effective_settings(loaded):
        if options.changed and setting.origin.source == "default":
            continue
        if options.json:
            print(json.dumps(setting.to_dict()))
            continue
        notes = [setting.human_readable, str(setting.origin) if options.origin else None]
        note = ", ".join(note for note in notes if note)
        print(f"{toml_line(setting):<{WIDTH}}  # {note}" if note else toml_line(setting))
    return 0


def _reference(options: argparse.Namespace) -> int:
    from frazil.config import reference, settings

    if not options.json:
        print(reference(), end="")
        return 0
    for setting in settings():
        print(json.dumps(setting.to_dict()))
    return 0
