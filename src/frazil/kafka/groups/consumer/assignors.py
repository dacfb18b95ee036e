"""The assignors of the server: which member gets which partition. Functions of their arguments
alone, so that every node computes the same."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from frazil.kafka.groups.consumer_group import NO_PARTITIONS, IdPartition, Partitions

SWEEPS_MAX = 100
"""Rounds of balancing. With equal subscriptions one is enough; with others a few are."""


@dataclass(frozen=True, slots=True)
class MemberSubscription:
    """What an assignor knows of a member."""

    topic_ids: frozenset[bytes]
    instance_id: str | None = None


MemberSubscriptions = Mapping[str, MemberSubscription]
PartitionCounts = Mapping[bytes, int]
Target = dict[str, Partitions]
Assignor = Callable[[MemberSubscriptions, PartitionCounts, Mapping[str, Partitions]], Target]


def assign_range(
    subscribers: MemberSubscriptions, counts: PartitionCounts, before: Mapping[str, Partitions]
) -> Target:
    """Give each subscriber of a topic a range of its partitions: members with equal subscriptions
    get the same numbers of every topic. `before` does not matter."""
    ordered = sorted(subscribers, key=lambda each: _range_order(each, subscribers[each]))
    found: dict[str, set[IdPartition]] = {member_id: set() for member_id in ordered}
    for topic_id, count in counts.items():
        takers = [each for each in ordered if topic_id in subscribers[each].topic_ids]
        start = 0
        for number, member_id in enumerate(takers):
            quota, extra = divmod(count, len(takers))
            end = start + quota + (number < extra)
            found[member_id].update(IdPartition(topic_id, each) for each in range(start, end))
            start = end
    return {member_id: frozenset(partitions) for member_id, partitions in found.items()}


def _range_order(member_id: str, subscriber: MemberSubscription) -> tuple[bool, str, str]:
    """Static members first, by their names: those stay over a restart."""
    return subscriber.instance_id is None, subscriber.instance_id or "", member_id


def assign_uniform(
    subscribers: MemberSubscriptions, counts: PartitionCounts, before: Mapping[str, Partitions]
) -> Target:
    """Give every member as many partitions as the others, and let it keep what it had. Balance
    comes first: a partition moves only if that makes the shares more equal."""
    ordered = sorted(subscribers)
    kept: dict[str, set[IdPartition]] = {}
    taken: set[IdPartition] = set()
    for member_id in ordered:
        topic_ids = subscribers[member_id].topic_ids
        kept[member_id] = {
            each
            for each in before.get(member_id, NO_PARTITIONS)
            if each.topic_id in topic_ids
            and each.partition < counts.get(each.topic_id, 0)
            and each not in taken
        }
        taken |= kept[member_id]
    pools = _pools(ordered, subscribers, counts)
    for members, partitions in pools:
        _give([each for each in partitions if each not in taken], members, kept)
    for _ in range(SWEEPS_MAX):
        if not sum(_balance(members, partitions, kept) for members, partitions in pools):
            break
    return {member_id: frozenset(partitions) for member_id, partitions in kept.items()}


Pool = tuple[Sequence[str], Sequence[IdPartition]]
"""Partitions, and the members that may own each of them."""


def _pools(
    ordered: Sequence[str], subscribers: MemberSubscriptions, counts: PartitionCounts
) -> list[Pool]:
    """Return all partitions together if the subscriptions are equal, otherwise those of each
    topic, the ones with few subscribers first."""
    if len({subscribers[each].topic_ids for each in ordered}) == 1:
        topic_ids = subscribers[ordered[0]].topic_ids
        numbered = [_partitions(each, counts) for each in sorted(topic_ids & counts.keys())]
        return [(ordered, [each for topic in numbered for each in topic])]
    takers: dict[bytes, list[str]] = {topic_id: [] for topic_id in sorted(counts)}
    for member_id in ordered:
        for topic_id in subscribers[member_id].topic_ids & counts.keys():
            takers[topic_id].append(member_id)
    by_few = sorted(takers.items(), key=lambda item: (len(item[1]), item[0]))
    return [(members, _partitions(topic_id, counts)) for topic_id, members in by_few if members]


def _partitions(topic_id: bytes, counts: PartitionCounts) -> list[IdPartition]:
    return [IdPartition(topic_id, number) for number in range(counts[topic_id])]


def _give(
    partitions: Sequence[IdPartition], members: Sequence[str], kept: dict[str, set[IdPartition]]
) -> None:
    """Give partitions without an owner to the members with the fewest."""
    if not partitions:
        return
    shares = [(len(kept[each]), each) for each in members]
    heapq.heapify(shares)
    for partition in partitions:
        count, member_id = shares[0]
        kept[member_id].add(partition)
        heapq.heapreplace(shares, (count + 1, member_id))


def _balance(
    members: Sequence[str], partitions: Sequence[IdPartition], kept: dict[str, set[IdPartition]]
) -> int:
    """Move partitions from the member with the most to the one with the fewest. Returns how many
    were moved."""
    sizes = [len(kept[each]) for each in members]
    if max(sizes) - min(sizes) < 2:
        return 0
    pool = set(partitions)
    movable = {each: sorted(kept[each] & pool) for each in members}
    fewest = [(len(kept[each]), each) for each in members]
    most = [(-len(kept[each]), each) for each in members if movable[each]]
    heapq.heapify(fewest)
    heapq.heapify(most)
    moved = 0
    while most:
        size, donor = most[0]
        if -size != len(kept[donor]) or not movable[donor]:
            heapq.heappop(most)  # an entry of earlier
            continue
        count, taker = fewest[0]
        if count != len(kept[taker]):
            heapq.heappop(fewest)
            continue
        if -size - count < 2:
            break
        partition = movable[donor].pop()
        kept[donor].remove(partition)
        kept[taker].add(partition)
        movable[taker].append(partition)
        for each in (donor, taker):
            heapq.heappush(fewest, (len(kept[each]), each))
            heapq.heappush(most, (-len(kept[each]), each))
        moved += 1
    return moved


DEFAULT_ASSIGNOR = "uniform"
ASSIGNORS: Mapping[str, Assignor] = {DEFAULT_ASSIGNOR: assign_uniform, "range": assign_range}
