"""List consumer groups with their lag; describe, reset or delete one. They are those of the node,
or of any Kafka with --brokers. Lag is the number of offsets that a group has not committed yet."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING, Any

from frazil.cli.data_folder import confirm
from frazil.cli.kafka.brokers import add_brokers, brokers_of
from frazil.cli.options import add_json, inherit_flags
from frazil.cli.terminal.table import Heading, Row, headings_of, print_facts, print_table
from frazil.cli.times import moment
from frazil.errors import Conflict, Malformed, Unknown
from frazil.model import SystemClock, TopicPartition

if TYPE_CHECKING:
    from frazil.cli.kafka.broker_admin import BrokerAdmin, GroupDescription

HELP = "List consumer groups and their lag; describe, reset or delete one"
HEADINGS = [*headings_of("group", "state", numbers=("members", "partitions", "lag"))]
OFFSETS = [
    *headings_of("topic", numbers=("partition", "committed", "end", "lag")),
    Heading(name="member"),
]
MEMBERS = headings_of("member", "client", "host", numbers=("partitions",))
CHANGES = headings_of("topic", numbers=("partition", "committed", "new", "change"))
EARLIEST, LATEST = "earliest", "latest"
EMPTY, DEAD = "EMPTY", "DEAD"
NOT_DONE = 1

Fact = dict[str, Any]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_brokers(parser)
    add_json(parser, "print one JSON object per group")
    verbs = parser.add_subparsers(metavar="VERB", dest="what")

    def add_verb(name: str, help_text: str) -> argparse.ArgumentParser:
        verb = verbs.add_parser(name, help=help_text, description=help_text)
        add_brokers(verb)
        return verb

    describe = add_verb("describe", "Show members, offsets and lag of a group")
    describe.add_argument("group", metavar="GROUP")
    add_json(describe, "print one JSON object")
    reset = add_verb(
        "reset",
        "Move the committed offsets of a group without members. Shows what would change; --apply "
        "changes it.",
    )
    reset.add_argument("group", metavar="GROUP")
    reset.add_argument(
        "--to",
        required=True,
        metavar="WHERE",
        help="earliest, latest, or a time: 15m ago, 2026-11-16T10:00Z",
    )
    reset.add_argument(
        "--topic",
        dest="topics",
        action="append",
        metavar="TOPIC",
        help="only this one, also if nothing is committed yet; repeatable",
    )
    reset.add_argument("--apply", action="store_true", help="change the offsets")
    add_json(reset, "print one JSON object per partition")
    delete = add_verb("delete", "Delete groups without members, and their offsets")
    delete.add_argument("groups", nargs="+", metavar="GROUP")
    delete.add_argument("--yes", action="store_true", help="do not ask for confirmation")
    inherit_flags(parser, verbs)


def run(options: argparse.Namespace) -> int:
    from frazil.cli.kafka.broker_admin import BrokerAdmin

    verbs = {"describe": _describe, "reset": _reset, "delete": _delete}
    return verbs.get(options.what, _list)(options, BrokerAdmin(brokers_of(options)))


def _list(options: argparse.Namespace, admin: BrokerAdmin) -> int:
    names = admin.group_ids()
    committed = admin.committed(names)
    existing = set(_partitions(admin, None))
    ends = admin.end_offsets({each for of in committed.values() for each in of} & existing)
    facts = [
        {
            "group": group.group,
            "state": group.state.lower(),
            "members": len(group.members),
            "partitions": len(committed[group.group]),
            "lag": sum(
                max(0, ends[each] - offset)
                for each, offset in committed[group.group].items()
                if each in ends
            ),
        }
        for group in admin.groups(names)
    ]
    print_facts(facts, HEADINGS, _row, "no consumer groups yet", is_json=options.json)
    return 0


def _row(group: Fact) -> Row:
    return (
        group["group"],
        group["state"],
        *(f"{group[name]:,}" for name in ("members", "partitions", "lag")),
    )


def _partitions(admin: BrokerAdmin, topics: list[str] | None) -> list[TopicPartition]:
    """Return the partitions of these topics, or of all."""
    found = admin.topics()
    for name in topics or ():
        if name not in found:
            raise Unknown(f"there is no topic {name}; `frazil topics` lists them")
    chosen = found if topics is None else topics
    return [TopicPartition(name, each.partition) for name in chosen for each in found[name]]


def _group(admin: BrokerAdmin, name: str) -> GroupDescription:
    """Return a group. Kafka describes one that does not exist as dead."""
    (group,) = admin.groups([name])
    if group.state == DEAD and name not in admin.group_ids():
        raise Unknown(f"there is no group {name}; `frazil groups` lists them")
    return group


def _describe(options: argparse.Namespace, admin: BrokerAdmin) -> int:
    group = _group(admin, options.group)
    committed = admin.committed([options.group])[options.group]
    owners = {each: member for member in group.members for each in member.partitions}
    existing = set(_partitions(admin, None))
    shown = sorted({*committed, *owners} & existing)
    ends = admin.end_offsets(shown)
    offsets: list[Fact] = [
        {
            "topic": each.topic,
            "partition": each.partition,
            "committed": committed.get(each),
            "end": ends[each],
            "lag": None if each not in committed else max(0, ends[each] - committed[each]),
            "member": owners[each].member_id if each in owners else None,
        }
        for each in shown
    ]
    members = [
        {
            "member": each.member_id,
            "client": each.client_id,
            "host": each.host.removeprefix("/"),
            "instance": each.instance_id,
            "partitions": len(each.partitions),
        }
        for each in group.members
    ]
    fact = {"group": group.group, "state": group.state.lower(), "assignor": group.assignor}
    if options.json:
        print(json.dumps({**fact, "members": members, "offsets": offsets}))
        return 0
    lag = sum(each["lag"] or 0 for each in offsets)
    assignor = f", {group.assignor}" if group.assignor else ""
    count = len(members)
    print(
        f"{group.group}: {fact['state']}{assignor}, {count} member{'s' * (count != 1)}, lag {lag:,}"
    )
    if offsets:
        print_table(OFFSETS, [_offset_row(each) for each in offsets])
    if members:
        print_table(
            MEMBERS,
            [
                (
                    str(each["instance"] or each["member"]),
                    str(each["client"]),
                    str(each["host"]),
                    str(each["partitions"]),
                )
                for each in members
            ],
        )
    return 0


def _offset_row(offset: Fact) -> Row:
    return (
        offset["topic"],
        str(offset["partition"]),
        *("-" if offset[name] is None else f"{offset[name]:,}" for name in ("committed", "end")),
        "-" if offset["lag"] is None else f"{offset['lag']:,}",
        offset["member"] or "-",
    )


def _reset(options: argparse.Namespace, admin: BrokerAdmin) -> int:
    group, topics = options.group, options.topics
    (described,) = admin.groups([group])
    if described.members or described.state not in (EMPTY, DEAD):
        raise Conflict(
            f"group {group} has {len(described.members)} members, which would overwrite the "
            "offsets; stop them first"
        )
    committed = admin.committed([group])[group]
    if topics is not None:
        partitions = _partitions(admin, topics)
    else:
        existing = set(_partitions(admin, None))
        partitions = sorted(set(committed) & existing)
    if not partitions:
        raise Unknown(f"group {group} has no committed offsets; name a topic with --topic")
    if options.to == EARLIEST:
        new = admin.start_offsets(partitions)
    elif options.to == LATEST:
        new = admin.end_offsets(partitions)
    else:
        when = moment(options.to, SystemClock())
        if when.timestamp() < 0:
            raise Malformed(f"--to {options.to} is before 1970")
        new = admin.offsets_at(partitions, round(when.timestamp() * 1000))
    facts = [
        {
            "topic": each.topic,
            "partition": each.partition,
            "committed": committed.get(each),
            "new": new[each],
            "is_applied": options.apply,
        }
        for each in partitions
    ]
    if options.apply:
        admin.set_committed(group, new)
    print_facts(facts, CHANGES, _change_row, "", is_json=options.json)
    if not options.json:
        count = f"{len(facts):,} offset{'s' * (len(facts) != 1)}"
        print(
            f"changed {count}" if options.apply else f"nothing was changed; --apply changes {count}"
        )
    return 0


def _change_row(fact: Fact) -> Row:
    committed = fact["committed"]
    return (
        fact["topic"],
        str(fact["partition"]),
        "-" if committed is None else f"{committed:,}",
        f"{fact['new']:,}",
        "-" if committed is None else _change_text(fact["new"] - committed),
    )


def _change_text(change: int) -> str:
    return f"{change:+,}" if change else "0"


def _delete(options: argparse.Namespace, admin: BrokerAdmin) -> int:
    names = ", ".join(options.groups)
    for name in options.groups:
        if _group(admin, name).members:
            raise Conflict(f"group {name} has members; stop them first")
    if not confirm(f"Delete {names} and all offsets?", is_sure=options.yes):
        return NOT_DONE
    admin.delete_groups(options.groups)
    print(f"deleted {names}")
    return 0
