"""Which quota counts, and how many bytes it lets through."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from frazil.kafka.access.quotas import (
    BURST_S,
    NS_PER_S,
    PRODUCE_RATE,
    THROTTLE_MS_MAX,
    QuotaEntity,
    TokenBucket,
    quota_of,
)

ORDER = [
    *(("alice", "app"), ("alice", ""), ("alice", None), ("", "app")),
    *(("", ""), ("", None), (None, "app"), (None, "")),
]
"""Kafka's order."""


def test_the_most_specific_quota_counts() -> None:
    """With every subset of the quotas that can count for a client."""
    for count in range(len(ORDER) + 1):
        for chosen in itertools.combinations(range(len(ORDER)), count):
            quotas = {
                QuotaEntity(*ORDER[number]): {PRODUCE_RATE: 1.0 + number} for number in chosen
            }
            found = quota_of(quotas, PRODUCE_RATE, "alice", "app")
            assert (None if found is None else found[1]) == (1.0 + chosen[0] if chosen else None)


def test_a_default_gives_as_much_to_each() -> None:
    """A quota of a user is shared by its clients; one of the default user is not by users."""
    of_default, of_user = {QuotaEntity("", None): {PRODUCE_RATE: 5.0}}, QuotaEntity("bob", None)
    counted = {
        (user, client): quota_of(of_default, PRODUCE_RATE, user, client)
        for user in ("alice", "bob")
        for client in ("a", "b")
    }
    assert counted["bob", "a"] == counted["bob", "b"] == (of_user, 5.0)
    assert counted["alice", "a"] != counted["bob", "a"]


@given(
    rate=st.floats(1, 1e9),
    steps=st.lists(st.tuples(st.integers(0, 10**7), st.integers(0, 5 * NS_PER_S)), max_size=30),
)
def test_a_client_that_waits_stays_within_its_rate(
    rate: float, steps: list[tuple[int, int]]
) -> None:
    """Before each request a client that obeys has sent at most its rate, and one burst."""
    now_ns, sent, bucket = 0, 0, TokenBucket(rate, 0)
    owes = False
    for size, pause_ns in steps:
        if not owes:
            assert sent <= rate * (BURST_S + now_ns / NS_PER_S) * (1 + 1e-9) + 1
        wait_ms = bucket.take(size, now_ns)
        sent += size
        owes = wait_ms == THROTTLE_MS_MAX  # the rest is added to the next pause
        now_ns += pause_ns + wait_ms * 1_000_000
    assert bucket.take(0, now_ns + 10**18) == 0


def test_within_the_rate_nobody_waits() -> None:
    bucket = TokenBucket(1000.0, 0)
    assert [bucket.take(100, number * NS_PER_S // 10) for number in range(100)] == [0] * 100
    assert bucket.take(5000, 10 * NS_PER_S) > 3000
