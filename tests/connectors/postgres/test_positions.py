"""Positions and acknowledgements."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frazil.connectors.contract import POSITION_BYTES_MAX
from frazil.connectors.postgres.positions import (
    COLUMNS_MARKED_MAX,
    Acknowledgements,
    PostgresPosition,
    column_marks,
    lsn_text,
    parse_lsn,
    split_marks,
)
from frazil.errors import Malformed


@given(st.integers(0, 2**64 - 1))
def test_lsns_come_back(lsn: int) -> None:
    assert parse_lsn(lsn_text(lsn)) == lsn


@pytest.mark.parametrize("text", ["", "1", "1/", "x/1", "1/123456789", "-1/0/"])
def test_other_texts_are_no_lsns(text: str) -> None:
    with pytest.raises(Malformed):
        parse_lsn(text)


def test_a_position_fits() -> None:
    """The largest position is within what the log stores; and it comes back."""
    names = [f"column {number}" for number in range(COLUMNS_MARKED_MAX)]
    most = "FFFFFFFF/FFFFFFFF"
    position = PostgresPosition(
        system="9" * 20,
        slot="s" * 63,
        lsn=most,
        number=2**63,
        end=most,
        oid=2**32 - 1,
        copied=2**63,
        columns=column_marks(names),
    )
    assert PostgresPosition.decode(position.encode()) == position
    assert len(position.encode()) <= POSITION_BYTES_MAX
    assert len(split_marks(position.columns)) == len(names)
    assert not column_marks([*names, "one more"])


@pytest.mark.parametrize("data", [b"", b"{}", b'{"system":"1","slot":"s","lsn":"x"}'])
def test_other_bytes_are_no_positions(data: bytes) -> None:
    with pytest.raises(Malformed):
        PostgresPosition.decode(data)


@given(st.lists(st.sets(st.sampled_from("abc"), max_size=3), min_size=1, max_size=12), st.randoms())
def test_nothing_is_acknowledged_before_all_below_it_is_durable(
    groups: list[set[str]], rand: object
) -> None:
    """Streams become durable in any order among each other; each stream in its own."""
    acks, left = Acknowledgements(), []
    for end, streams in enumerate(groups, 1):
        batches = [(stream, str(end).encode()) for stream in streams]
        acks.wait_for(batches, end)
        left += [(end, batch) for batch in batches]
    while left:
        firsts = {batch[0]: (end, batch) for end, batch in reversed(left)}
        end, batch = rand.choice(sorted(firsts.values()))  # type: ignore[attr-defined]
        acks.durable(*batch)
        left.remove((end, batch))
        below = min((end for end, _ in left), default=len(groups) + 1)
        assert acks.durable_lsn == below - 1
    assert acks.is_empty
