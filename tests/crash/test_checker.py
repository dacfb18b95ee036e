"""The checker detects every planted anomaly."""

from __future__ import annotations

import pytest

from tests.torture.checker import Identity, Observed, check
from tests.torture.history import Sent, history_of
from tests.torture.ids import identity_of, records_of, value_of

Event = list[str | int]

OK = [
    Sent(producer=1, sequence=0, count=2, partition=0, outcome="ok", offset=0),
    Sent(producer=2, sequence=0, count=1, partition=0, outcome="ok", offset=2),
]
UNSURE = Sent(producer=1, sequence=2, count=1, partition=0, outcome="info")
REFUSED = Sent(producer=1, sequence=3, count=1, partition=0, outcome="fail")


def seen(*records: tuple[int, Identity | None], start: int = 0) -> Observed:
    end = records[-1][0] + 1 if records else start
    return Observed(start_offset=start, end_offset=end, records=records)


WHOLE = ((0, (1, 0)), (1, (1, 1)), (2, (2, 0)))


@pytest.mark.parametrize(
    ("records", "anomalies"),
    [
        (WHOLE, set()),
        ((*WHOLE, (3, (1, 2))), set()),
        (WHOLE[:2], {"lost"}),
        ((WHOLE[0], (1, (2, 0)), (2, (1, 1))), {"moved"}),
        (((0, (1, 1)), (1, (1, 0)), WHOLE[2]), {"moved", "order"}),
        ((*WHOLE, (3, (2, 0))), {"duplicate"}),
        ((*WHOLE, (3, (1, 3))), {"refused"}),
        ((*WHOLE, (3, (9, 9))), {"foreign"}),
        ((*WHOLE, (3, None)), {"foreign"}),
        ((*WHOLE, (4, (1, 2))), {"hole"}),
    ],
)
def test_each_planted_anomaly_is_named(
    records: tuple[tuple[int, Identity | None], ...], anomalies: set[str]
) -> None:
    verdict = check([*OK, UNSURE, REFUSED], {0: seen(*records)})
    assert set(verdict.counts) == anomalies
    assert verdict.is_valid == (not anomalies)


def test_expired_records_are_not_lost() -> None:
    assert check(OK, {0: seen((2, (2, 0)), start=2)}).is_valid


def test_records_a_reader_has_seen_must_stay() -> None:
    """Acknowledged or not."""
    observed = {0: seen(*WHOLE)}
    assert check([*OK, UNSURE], observed, {0: {2: (2, 0)}}).is_valid
    verdict = check([*OK, UNSURE], observed, {0: {3: (1, 2)}})
    assert set(verdict.counts) == {"retracted"}


def test_a_refused_retry_leaves_the_first_attempt_unknown() -> None:
    """A batch counts as not stored only if every attempt was refused."""
    invoke: Event = ["invoke", 1, 0, 1, 0]
    fail: Event = ["fail", 1, 0, 1, 0, -1]
    ok: Event = ["ok", 1, 0, 1, 0, 7]

    def outcome(*events: Event) -> str:
        return history_of(events)[0].outcome

    assert outcome(invoke, fail) == "fail"
    assert outcome(invoke) == "info"
    assert outcome(invoke, invoke, fail) == "info"
    assert outcome(invoke, ["info", 1, 0, 1, 0, -1], invoke, fail) == "info"
    assert outcome(invoke, invoke, ok) == "ok"
    assert outcome(invoke, ok, invoke, fail) == "ok"


def test_payloads_are_derived_from_their_id() -> None:
    """Content is checked without being stored: any changed byte is foreign."""
    value = value_of(3, 17)
    assert identity_of(value) == (3, 17)
    for position in range(len(value)):
        damaged = bytearray(value)
        damaged[position] ^= 1
        assert identity_of(bytes(damaged)) != (3, 17)
    assert [r.value for r in records_of(3, 17, 2)] == [value, value_of(3, 18)]
