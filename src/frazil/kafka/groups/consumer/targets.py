"""Targets: which member shall own which partition, whenever members, subscriptions or topics have
changed."""

from __future__ import annotations

from collections import Counter

from frazil.kafka.groups.consumer.assignors import ASSIGNORS, DEFAULT_ASSIGNOR, MemberSubscription
from frazil.kafka.groups.consumer.known_topics import KnownTopics
from frazil.kafka.groups.consumer_group import ConsumerGroupData


def assignor_of(data: ConsumerGroupData) -> str:
    """Return the assignor that most members ask for."""
    votes = Counter(member.assignor for member in data.members.values() if member.assignor)
    names = sorted(votes, key=lambda name: (-votes[name], name != DEFAULT_ASSIGNOR, name))
    return next((name for name in names if name in ASSIGNORS), DEFAULT_ASSIGNOR)


def update_target(data: ConsumerGroupData, topics: KnownTopics, *, is_changed: bool) -> bool:
    """Begin a new epoch if members have changed, or the topics that they are subscribed to, and
    compute its target. Returns whether it did."""
    data.regexes = _resolved(data, topics)
    metadata_hash = topics.hash_of(data.subscribed_topics())
    if is_changed or metadata_hash != data.metadata_hash:
        data.epoch += 1
        data.metadata_hash = metadata_hash
    if data.epoch <= data.assignment_epoch:
        return False
    data.assignment_epoch = data.epoch
    cache: dict[tuple[tuple[str, ...], tuple[str, ...]], frozenset[bytes]] = {}
    subscribers = {}
    for member_id, member in data.members.items():
        key = (member.topics, data.matching(member))
        if key not in cache:
            cache[key] = _topic_ids({*key[0], *key[1]}, topics)
        subscribers[member_id] = MemberSubscription(cache[key], member.instance_id)
    subscribed = frozenset[bytes]().union(*cache.values())
    counts = {topic_id: topics.by_id[topic_id].partitions for topic_id in sorted(subscribed)}
    assign = ASSIGNORS[assignor_of(data)]
    data.target = assign(subscribers, counts, data.target)
    return True


def _resolved(data: ConsumerGroupData, topics: KnownTopics) -> dict[str, tuple[str, ...]]:
    """Return the topics of each regular expression; if there are ACLs, those that a member who has
    it may describe."""
    used: dict[str, set[str]] = {}
    for member in data.members.values():
        if member.regex is not None:
            names = used.setdefault(member.regex, set())
            if topics.has_acls:
                names.update(data.matching(member))
    if not topics.has_acls:
        return {regex: topics.matching(regex) for regex in sorted(used)}
    return {regex: tuple(sorted(names)) for regex, names in sorted(used.items())}


def _topic_ids(names: set[str], topics: KnownTopics) -> frozenset[bytes]:
    return frozenset(topics.by_name[name].topic_id for name in names if name in topics.by_name)
