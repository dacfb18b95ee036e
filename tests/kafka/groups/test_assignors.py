"""The assignors of the server: every subscribed partition has one owner, shares are even, and what
can stay stays."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from frazil.kafka.groups.consumer.assignors import (
    ASSIGNORS,
    MemberSubscription,
    assign_range,
    assign_uniform,
)
from frazil.kafka.groups.consumer_group import IdPartition, Partitions

TOPIC_IDS = [bytes([number]) * 16 for number in range(4)]
NAMES = [f"m{number}" for number in range(6)]

COUNTS = st.dictionaries(st.sampled_from(TOPIC_IDS), st.integers(1, 7), max_size=4)
SUBSCRIPTIONS = st.dictionaries(
    st.sampled_from(NAMES),
    st.builds(
        MemberSubscription,
        st.frozensets(st.sampled_from(TOPIC_IDS)),
        st.none() | st.sampled_from(["a", "b"]),
    ),
    min_size=1,
)
BEFORE = st.dictionaries(
    st.sampled_from([*NAMES, "gone"]),
    st.frozensets(st.builds(IdPartition, st.sampled_from(TOPIC_IDS), st.integers(0, 8))),
)


@given(SUBSCRIPTIONS, COUNTS, BEFORE, st.sampled_from(sorted(ASSIGNORS)))
def test_each_partition_has_one_owner_that_wants_it(
    members: dict[str, MemberSubscription],
    counts: dict[bytes, int],
    before: dict[str, Partitions],
    name: str,
) -> None:
    target = ASSIGNORS[name](members, counts, before)
    assert target.keys() == members.keys()
    owned = [each for partitions in target.values() for each in partitions]
    wanted = {topic_id for member in members.values() for topic_id in member.topic_ids}
    assert len(owned) == len(set(owned))
    assert set(owned) == {
        IdPartition(topic_id, number)
        for topic_id, count in counts.items()
        if topic_id in wanted
        for number in range(count)
    }
    for member_id, partitions in target.items():
        assert {each.topic_id for each in partitions} <= members[member_id].topic_ids
    shuffled = {key: members[key] for key in reversed(list(members))}
    assert ASSIGNORS[name](shuffled, counts, before) == target


@given(SUBSCRIPTIONS, COUNTS, BEFORE)
def test_uniform_is_balanced(
    members: dict[str, MemberSubscription], counts: dict[bytes, int], before: dict[str, Partitions]
) -> None:
    """No partition could go to a member that has two fewer."""
    target = assign_uniform(members, counts, before)
    for owner, partitions in target.items():
        for other, member in members.items():
            if any(each.topic_id in member.topic_ids for each in partitions):
                assert len(partitions) - len(target[other]) <= 1, (owner, other)


@given(
    st.integers(1, 30),
    st.lists(st.sampled_from(NAMES), unique=True, min_size=1),
    st.lists(st.sampled_from([*NAMES, None]), max_size=40),
)
def test_uniform_moves_as_little_as_possible(
    count: int, names: list[str], owners: list[str | None]
) -> None:
    """Members keep all of an equal share, and the surplus of as many as there is surplus for."""
    topic_id = TOPIC_IDS[0]
    before = {
        name: frozenset(
            IdPartition(topic_id, number) for number, each in enumerate(owners) if each == name
        )
        for name in NAMES
    }
    members = {name: MemberSubscription(frozenset({topic_id})) for name in names}
    target = assign_uniform(members, {topic_id: count}, before)
    share, surplus = divmod(count, len(names))
    valid = {name: sum(each.partition < count for each in before[name]) for name in names}
    best = sum(min(share, size) for size in valid.values())
    best += min(surplus, sum(size > share for size in valid.values()))
    assert sum(len(target[name] & before[name]) for name in names) == best
    assert assign_uniform(members, {topic_id: count}, target) == target


@given(st.integers(1, 20), st.integers(1, 20), st.integers(1, 6))
def test_range_gives_the_same_numbers_of_each_topic(first: int, second: int, size: int) -> None:
    """Ranges in the order of the members, the longer ones first; static members before others."""
    one, two = TOPIC_IDS[:2]
    members = {
        f"m{number}": MemberSubscription(frozenset({one, two}), "i" if number == size - 1 else None)
        for number in range(size)
    }
    target = assign_range(members, {one: first, two: second}, {})
    ordered = [f"m{size - 1}", *(f"m{number}" for number in range(size - 1))]
    for topic_id, count in ((one, first), (two, second)):
        shares = [
            sorted(each.partition for each in target[name] if each.topic_id == topic_id)
            for name in ordered
        ]
        assert [number for share in shares for number in share] == list(range(count))
        sizes = [len(share) for share in shares]
        assert sizes == sorted(sizes, reverse=True) and sizes[0] - sizes[-1] <= 1
    if first == second:
        for partitions in target.values():
            by_topic = [{p.partition for p in partitions if p.topic_id == t} for t in (one, two)]
            assert by_topic[0] == by_topic[1]
