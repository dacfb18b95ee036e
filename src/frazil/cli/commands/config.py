"""What is set, and where; and what can be."""

from __future__ import annotations

import argparse
import json

from frazil.cli.options import add_config, add_data, add_json, folder_overrides

HELP = "what is set, and where; and what can be"
WIDTH = 44
"""Most settings are shorter, so that notes stand below each other."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    verbs = parser.add_subparsers(required=True, metavar="WHAT", dest="what")
    show = verbs.add_parser("show", help="the settings in force", description=_show.__doc__)
    add_config(show)
    add_data(show, "as for the other verbs")
    show.add_argument("--origin", action="store_true", help="say where each comes from")
    show.add_argument("--changed", action="store_true", help="without those that are defaults")
    add_json(show, "one line of JSON per setting, with its origin")
    reference = verbs.add_parser("reference", help="the page on all settings, in Markdown")
    add_json(reference, "one line of JSON per setting")


def run(options: argparse.Namespace) -> int:
    """Print what was asked for."""
    return _show(options) if options.what == "show" else _reference(options)


def _show(options: argparse.Namespace) -> int:
    """Print the settings in force, as TOML. Secrets are hidden."""
    from frazil.config import read, shown, toml_line

    loaded = read(options.config, folder_overrides(options), assignments=options.assignments)
    all_of_them = shown(loaded)
    if options.changed:
        all_of_them = [each for each in all_of_them if each.origin.source != "default"]
    for each in all_of_them:
        if options.json:
            print(json.dumps(each.to_dict()))
            continue
        notes = [each.spoken, str(each.origin) if options.origin else None]
        note = ", ".join(note for note in notes if note)
        print(f"{toml_line(each):<{WIDTH}}  # {note}" if note else toml_line(each))
    return 0


def _reference(options: argparse.Namespace) -> int:
    from frazil.config import reference, settings

    if not options.json:
        print(reference(), end="")
        return 0
    for setting in settings():
        print(json.dumps(setting.to_dict()))
    return 0
