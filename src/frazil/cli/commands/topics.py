"""List topics with partitions, records, size and retention; create, alter, delete or describe one.
They are those of the node; of any Kafka with --brokers; or with --data, of a folder without a node.

Records are counted by offsets: compaction and transactions leave gaps, so there may be fewer."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from frazil.cli.connection import add_where, connected, is_folder
from frazil.cli.data_folder import confirm, opened_log
from frazil.cli.kafka.brokers import add_brokers, add_cluster, brokers_of, pair_of
from frazil.cli.options import add_json, inherit_flags
from frazil.cli.terminal.table import Heading, Row, headings_of, print_facts, print_table
from frazil.cli.terminal.units import bytes_text
from frazil.cli.views.topics import partition_row, retention_text, topic_row
from frazil.errors import Malformed, Unknown
from frazil.model import TopicPartition

if TYPE_CHECKING:
    from frazil.cli.kafka.broker_admin import BrokerAdmin
    from frazil.log import Topic

HELP = "List topics; create, alter, delete or describe one"
HEADINGS = [
    *headings_of("topic", numbers=("partitions", "records", "size")),
    Heading(name="retention"),
]
PARTITIONS = headings_of(
    numbers=("partition", "start", "end", "hot lag", "lake lag", "segments", "size")
)
REPLICAS = [
    *headings_of(numbers=("partition", "start", "end", "leader")),
    *headings_of("replicas", "in sync"),
]
NOT_DONE = 1
MS_PER = {"s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
FOREVER = "forever"

Fact = dict[str, Any]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_where(parser)
    add_cluster(parser)
    add_json(parser, "print one JSON object per topic")
    verbs = parser.add_subparsers(metavar="VERB", dest="what")

    def add_verb(name: str, help_text: str) -> argparse.ArgumentParser:
        return verbs.add_parser(name, help=help_text, description=help_text)

    create = add_verb("create", "Create a topic")
    create.add_argument("topic", metavar="TOPIC")
    add_brokers(create)
    create.add_argument("--partitions", type=int, metavar="N", help="default: that of the broker")
    create.add_argument("--replicas", type=int, metavar="N", help="of a Kafka cluster")
    _add_settings(create)
    alter = add_verb("alter", "Add partitions to a topic, or change its settings")
    alter.add_argument("topic", metavar="TOPIC")
    add_brokers(alter)
    alter.add_argument("--partitions", type=int, metavar="N", help="grow to so many")
    _add_settings(alter)
    alter.add_argument(
        "--unset", action="append", default=[], metavar="NAME", help="reset a setting; repeatable"
    )
    delete = add_verb("delete", "Delete topics with all their records")
    delete.add_argument("topics", nargs="+", metavar="TOPIC")
    add_brokers(delete)
    delete.add_argument("--yes", action="store_true", help="do not ask for confirmation")
    describe = add_verb("describe", "Show partitions and settings of a topic")
    describe.add_argument("topic", metavar="TOPIC")
    add_where(describe)
    add_cluster(describe)
    describe.add_argument("--all", action="store_true", help="also settings that have defaults")
    add_json(describe, "print one JSON object")
    inherit_flags(parser, verbs)


def _add_settings(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--retention", metavar="AGE", help="keep records for 12h, 7d, or forever")
    add(
        "--setting",
        dest="settings",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="any setting of topics, as in cleanup.policy=compact; repeatable",
    )


def run(options: argparse.Namespace) -> int:
    verbs = {"create": _create, "alter": _alter, "delete": _delete, "describe": _describe}
    return verbs.get(options.what, _list)(options)


def _list(options: argparse.Namespace) -> int:
    if options.brokers is not None:
        topics = list(_from_brokers(_admin(options)))
    elif is_folder(options):
        with opened_log(options, "frazil topics") as log:
            topics = [_total(_from_log(topic)) for topic in log.topics()]
    else:
        status = connected(options).get("/api/v1/status")
        topics = [_total(topic) for topic in status["log"]["topics"]]
    when_empty = "no topics yet; a node creates them when it starts"
    print_facts(topics, HEADINGS, topic_row, when_empty, is_json=options.json)
    return 0


def _admin(options: argparse.Namespace) -> BrokerAdmin:
    from frazil.cli.kafka.broker_admin import BrokerAdmin

    return BrokerAdmin(brokers_of(options))


def _from_log(topic: Topic) -> Fact:
    """Return a topic of a data folder as the node's status has it, but without lag."""
    config = topic.config
    return {
        "topic": topic.name,
        "cleanup": config.cleanup,
        "retention_ms": config.retention_ms,
        "retention_bytes_max": config.retention_bytes_max,
        "awaits_lake": config.awaits_lake,
        "partitions": [
            {
                "partition": partition.index,
                "start_offset": partition.view.start_offset,
                "durable_watermark": partition.view.durable_watermark,
                "log_bytes": partition.view.size_bytes,
                "log_segments": len(partition.view.segments),
            }
            for partition in topic.partitions
        ],
    }


def _total(topic: Fact) -> Fact:
    """Return a topic with the sums of its partitions."""
    partitions = topic["partitions"]
    return {
        **topic,
        "partitions": len(partitions),
        "records": sum(p["durable_watermark"] - p["start_offset"] for p in partitions),
        "log_bytes": sum(p["log_bytes"] for p in partitions),
    }


def _from_brokers(admin: BrokerAdmin) -> Iterator[Fact]:
    """Return the topics of a Kafka cluster. It does not tell their size."""
    topics = admin.topics()
    partitions = _partitions(topics)
    starts, ends = admin.start_offsets(partitions), admin.end_offsets(partitions)
    settings = admin.settings(list(topics))
    for name, found in topics.items():
        values = {each.name: each.value for each in settings[name]}
        own = [TopicPartition(name, each.partition) for each in found]
        yield {
            "topic": name,
            "partitions": len(found),
            "records": sum(ends[each] - starts[each] for each in own),
            "log_bytes": None,
            "cleanup": _cleanup(values["cleanup.policy"]),
            "retention_ms": _limit(values["retention.ms"]),
            "retention_bytes_max": _limit(values["retention.bytes"]),
        }


def _partitions(topics: dict[str, Any]) -> list[TopicPartition]:
    return [TopicPartition(name, each.partition) for name, of in topics.items() for each in of]


def _cleanup(policy: str) -> str:
    """Return our name of Kafka's `cleanup.policy`, a list."""
    if "compact" not in policy:
        return "expire"
    return "compact_expire" if "delete" in policy else "compact"


def _limit(text: str) -> int | None:
    return None if int(text) < 0 else int(text)


def _create(options: argparse.Namespace) -> int:
    settings = _settings(options)
    partitions = _positive("partitions", options.partitions)
    _admin(options).create_topic(
        options.topic, partitions, _positive("replicas", options.replicas), settings
    )
    print(f"created topic {options.topic}")
    return 0


def _alter(options: argparse.Namespace) -> int:
    changes: dict[str, str | None] = {**_settings(options)}
    changes.update(dict.fromkeys(options.unset))
    partitions = _positive("partitions", options.partitions)
    if not changes and partitions is None:
        raise Malformed("nothing to change; use --partitions, --retention, --setting or --unset")
    admin = _admin(options)
    if changes:
        admin.change_settings(options.topic, changes)
    if partitions is not None:
        admin.add_partitions(options.topic, partitions)
    print(f"changed topic {options.topic}")
    return 0


def _settings(options: argparse.Namespace) -> dict[str, str]:
    settings = dict(pair_of(each, "--setting") for each in options.settings)
    if options.retention is not None:
        settings["retention.ms"] = str(_retention_ms(options.retention))
    return settings


def _retention_ms(text: str) -> int:
    if text == FOREVER:
        return -1
    number, unit = text[:-1], text[-1:]
    if not number.isdecimal() or unit not in MS_PER:
        raise Malformed(f"--retention {text!r} is not an age; write 12h, 7d or {FOREVER}")
    return int(number) * MS_PER[unit]


def _positive(name: str, count: int | None) -> int | None:
    if count is not None and count < 1:
        raise Malformed(f"--{name} {count} must be at least 1")
    return count


def _delete(options: argparse.Namespace) -> int:
    names = ", ".join(options.topics)
    admin = _admin(options)
    for name in options.topics:
        admin.topic(name)
    question = f"Delete {names} with all records?"
    if not confirm(question, is_sure=options.yes):
        return NOT_DONE
    admin.delete_topics(options.topics)
    print(f"deleted {names}")
    return 0


def _describe(options: argparse.Namespace) -> int:
    if options.brokers is not None:
        return _describe_on_brokers(options)
    settings = None
    if is_folder(options):
        with opened_log(options, "frazil topics") as log:
            topics = [_from_log(topic) for topic in log.topics()]
    else:
        topics = connected(options).get("/api/v1/status")["log"]["topics"]
    topic = next((each for each in topics if each["topic"] == options.topic), None)
    if topic is None:
        raise Unknown(f"there is no topic {options.topic}; `frazil topics` lists them")
    if not is_folder(options):
        settings = _admin(options).settings([options.topic])[options.topic]
    total = _total(topic)
    title = (
        f"{options.topic}: {total['records']:,} records, {bytes_text(total['log_bytes'])}, "
        f"retention {retention_text(topic)}"
    )
    rows = [partition_row(each) for each in topic["partitions"]]
    _print_description(options, topic, title, settings, PARTITIONS, rows)
    return 0


def _describe_on_brokers(options: argparse.Namespace) -> int:
    admin = _admin(options)
    found = admin.topic(options.topic)
    partitions = _partitions({options.topic: found})
    starts, ends = admin.start_offsets(partitions), admin.end_offsets(partitions)
    facts: list[Fact] = [
        {
            "partition": each.partition,
            "start_offset": starts[TopicPartition(options.topic, each.partition)],
            "end_offset": ends[TopicPartition(options.topic, each.partition)],
            "leader": each.leader,
            "replicas": list(each.replicas),
            "in_sync": list(each.in_sync),
        }
        for each in found
    ]
    records = sum(each["end_offset"] - each["start_offset"] for each in facts)
    rows = [
        (
            *(str(each["partition"]), f"{each['start_offset']:,}", f"{each['end_offset']:,}"),
            str(each["leader"]),
            *(", ".join(map(str, each[name])) for name in ("replicas", "in_sync")),
        )
        for each in facts
    ]
    topic = {"topic": options.topic, "partitions": facts}
    title = f"{options.topic}: {records:,} records"
    settings = admin.settings([options.topic])[options.topic]
    _print_description(options, topic, title, settings, REPLICAS, rows)
    return 0


def _print_description(
    options: argparse.Namespace,
    topic: Fact,
    title: str,
    settings: Sequence[Any] | None,
    headings: Sequence[Heading],
    rows: Sequence[Row],
) -> None:
    if options.json:
        if settings is not None:
            topic = {**topic, "settings": {each.name: each.value for each in settings}}
        print(json.dumps(topic))
        return
    print(title)
    print_table(headings, rows)
    for each in settings or ():
        if options.all or not each.is_default:
            print(f"{each.name} = {each.value}{' (default)' * each.is_default}")
