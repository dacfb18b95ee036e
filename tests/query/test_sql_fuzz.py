"""A short run of `python -m tests.fuzz --kind sql`."""

from __future__ import annotations

from tests.fuzz import sql as fuzz
from tests.fuzz.sql_texts import corpus, fuzzed_texts


def test_every_text_ends_with_rows_or_a_clear_error() -> None:
    """Some texts still run, others are refused, and none disturbs the next one."""
    report = fuzz.run(500, 1, is_timed=False)
    assert report["disagreements"] == []
    counts = {name: report[name] for name in fuzz.OUTCOMES}
    assert all(isinstance(count, int) for count in counts.values())
    assert sum(count for count in counts.values() if isinstance(count, int)) == 500
    assert counts["ok"] and counts["malformed"] and counts["unknown"], counts
    assert report["acknowledged"]


def test_the_same_seed_gives_the_same_texts() -> None:
    texts = corpus()
    assert len(texts) > 300
    assert list(fuzzed_texts(50, 3, texts)) == list(fuzzed_texts(50, 3, texts))
    assert list(fuzzed_texts(50, 3, texts)) != list(fuzzed_texts(50, 4, texts))
