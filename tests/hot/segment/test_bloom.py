"""A filter never denies what is there, and seldom affirms what is not."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from frazil.hot.segment import bloom
from frazil.hot.segment.bloom import BLOCK_BYTES, Bloom, build_bloom, hash_of

TEXTS = st.lists(st.none() | st.text(max_size=40), max_size=200)


def built(*chunks: Sequence[str | None]) -> Bloom:
    return build_bloom(pa.chunked_array(chunks, pa.string()))


@given(st.lists(TEXTS, max_size=4))
def test_a_contained_string_is_always_found(chunks: list[list[str | None]]) -> None:
    """Any lengths and chunks, with nulls."""
    found = built(*chunks)
    assert len(found.data) % 64 == 0
    for text in (text for chunk in chunks for text in chunk if text is not None):
        assert found.may_hold(text)


@given(st.lists(st.text(max_size=40), max_size=50))
def test_column_hashes_equal_single_hashes(texts: list[str]) -> None:
    found = bloom._hashes(pa.array(texts, pa.string()))
    assert sorted(found.tolist()) == sorted(hash_of(text) for text in texts)


@given(st.lists(st.text(max_size=9), min_size=3, max_size=30), st.integers(0, 2))
def test_only_the_strings_of_a_slice_are_hashed(texts: list[str], begin: int) -> None:
    part = pa.array(texts, pa.string()).slice(begin, len(texts) - begin - 1)
    found = bloom._hashes(part)
    assert sorted(found.tolist()) == sorted(map(hash_of, texts[begin:-1]))


@pytest.mark.parametrize("count", [100, 5000, 30_000])
def test_false_positives_are_below_one_percent(count: int) -> None:
    rand = np.random.default_rng(count)
    ids = [rand.bytes(16).hex() for _ in range(count)]
    found = built(ids)
    wrong = sum(found.may_hold(rand.bytes(16).hex()) for _ in range(20_000))
    assert 0 <= wrong < 200


def test_repeated_strings_take_no_space() -> None:
    assert len(built(["a", "b"] * 5000, ["b"] * 5000).data) == 2 * BLOCK_BYTES


@pytest.mark.parametrize("chunks", [[], [[]], [[None, None]]])
def test_an_empty_filter_holds_nothing(chunks: list[list[str | None]]) -> None:
    found = built(*chunks)
    assert not found.may_hold("") and not found.may_hold("a")


def test_the_filter_does_not_depend_on_memory_layout() -> None:
    ids = [f"{n:032x}" for n in range(1000)]
    apart = [text for pair in zip(ids, ["x", "yy"] * 500, strict=True) for text in pair]
    assert built(ids).data == built(ids[500:], ids[:500]).data
    mixed = built(apart)
    assert all(map(mixed.may_hold, apart))


def test_invalid_surrogates_can_be_looked_up() -> None:
    assert not built(["a"]).may_hold("\ud800")


@pytest.mark.parametrize(
    ("text", "hashed"),
    [
        ("", 0x9CA066F1A4AB2EEA),
        ("a", 0xB82D100E587AEAAA),
        ("0af7651916cd43dd8448eb211c80319c", 0x9593E38892ECCF51),
    ],
)
def test_the_hash_never_changes(text: str, hashed: int) -> None:
    """Files on disk depend on it."""
    assert hash_of(text) == hashed
