"""List, add and remove users of the Kafka port, who log in by SCRAM if kafka.scram = true. Works on
the data folder, also of a running node: a change counts from the next login on. Kafka's own tools
can do the same over the port."""

from __future__ import annotations

import argparse
import json
import os
import sys
from getpass import getpass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from frazil.cli.data_folder import checked_folder, confirm
from frazil.cli.options import add_config, add_data, add_json, inherit_flags
from frazil.cli.terminal.table import Row, headings_of, print_facts
from frazil.errors import Malformed, Unknown

if TYPE_CHECKING:
    from frazil.kafka import UserFile, UserTable

HELP = "List, add and remove users of the Kafka port"
HEADINGS = headings_of("user", "mechanisms")
NOT_DONE = 1

Fact = dict[str, Any]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    def add_flags(verb: argparse.ArgumentParser) -> None:
        add_config(verb)
        add_data(verb, "data folder of the node, which may be running")
        add_json(verb, "print JSON")

    add_flags(parser)
    verbs = parser.add_subparsers(metavar="VERB", dest="what")

    def add_verb(name: str, help_text: str) -> argparse.ArgumentParser:
        verb = verbs.add_parser(name, help=help_text, description=help_text)
        verb.add_argument("name", metavar="NAME")
        add_flags(verb)
        return verb

    add = add_verb(
        "add",
        "Add a user, or give it another password. Asks for the password, or reads a line of "
        "standard input.",
    )
    add.add_argument(
        "--iterations",
        type=int,
        default=4096,
        metavar="N",
        help="hashes that a client computes to log in, 4096 to 16384 (default: 4096)",
    )
    remove = add_verb("remove", "Remove a user. Its open connections stay until they end.")
    remove.add_argument("--yes", action="store_true", help="do not ask for confirmation")
    inherit_flags(parser, verbs)


def run(options: argparse.Namespace) -> int:
    from frazil.disk import RealDisk
    from frazil.kafka import UserFile
    from frazil.model import SystemClock, SystemRand

    config = checked_folder(options)
    if options.what is not None:
        _check_owner(Path(config.data))
    file = UserFile(RealDisk(config.data), SystemRand(), SystemClock())
    verbs = {"add": _add, "remove": _remove}
    return verbs.get(options.what, _list)(options, file)


def _check_owner(folder: Path) -> None:
    """Refuse to write a file that the node could not read: it is for its owner only."""
    owner = folder.stat().st_uid
    if owner != os.geteuid():
        raise Malformed(
            f"{folder} belongs to the user with the number {owner}; run this as that user, as in "
            f"sudo -u '#{owner}' frazil users"
        )


def _list(options: argparse.Namespace, file: UserFile) -> int:
    from frazil.kafka import Mechanism

    facts = [
        {"user": name, "mechanisms": [Mechanism(number).label for number in sorted(credentials)]}
        for name, credentials in sorted(file.read().users.items())
    ]
    print_facts(facts, HEADINGS, _row, "no users yet", is_json=options.json)
    return 0


def _row(fact: Fact) -> Row:
    return fact["user"], ", ".join(fact["mechanisms"])


def _add(options: argparse.Namespace, file: UserFile) -> int:
    from frazil.kafka import Mechanism, check_user_name, new_credential
    from frazil.model import SystemRand

    name = options.name
    check_user_name(name)
    password, rand = _password(name), SystemRand()
    credentials = {
        mechanism: new_credential(mechanism, password, rand, options.iterations)
        for mechanism in Mechanism
    }

    def change(table: UserTable) -> UserTable:
        for mechanism, credential in credentials.items():
            table = table.with_credential(name, mechanism, credential)
        return table

    file.change(change)
    print(json.dumps({"added": name}) if options.json else f"added {name}")
    return 0


def _password(name: str) -> str:
    """Ask for a password on the terminal, or read it from standard input."""
    if not sys.stdin.isatty():
        password = sys.stdin.readline().rstrip("\r\n")
    else:
        password = getpass(f"Password of {name}: ")
        if getpass("Once more: ") != password:
            raise Malformed("the passwords differ")
    if not password:
        raise Malformed("the password is empty; type it, or send a line to standard input")
    return password


def _remove(options: argparse.Namespace, file: UserFile) -> int:
    name = options.name
    if name not in file.read().users:
        raise Unknown(f"there is no user {name}; `frazil users` lists them")
    if not confirm(f"Remove user {name}?", is_sure=options.yes):
        return NOT_DONE
    file.change(lambda table: table.without(name) if name in table.users else table)
    print(json.dumps({"removed": name}) if options.json else f"removed {name}")
    return 0
