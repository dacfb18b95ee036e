"""Log patterns: every record is counted once, and texts are clustered by their fixed words."""

from __future__ import annotations

import datetime
from typing import Any

import datafusion
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from frazil.model.arrow import LOGS
from frazil.query.search.filters import Ask
from frazil.query.search.to_sql import query_conditions
from frazil.query.telemetry import log_patterns as module
from frazil.query.telemetry.log_patterns import LEAF_MAX, PatternsAnswer, log_patterns

BEGIN = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
MINUTE = datetime.timedelta(minutes=1)


def over(bodies: list[str | None], **more: Any) -> Ask:
    """Records one second apart."""
    rows = [
        {
            "_offset": at,
            "_row": 0,
            "time": BEGIN + datetime.timedelta(seconds=at),
            "service_name": "web",
            "severity_number": 9,
            "body": body,
            **more,
        }
        for at, body in enumerate(bodies)
    ]
    schema = pa.schema([field.with_nullable(True) for field in LOGS])
    context = datafusion.SessionContext()
    context.register_record_batches("logs", [pa.Table.from_pylist(rows, schema).to_batches()])
    return lambda sql: context.sql(sql).to_arrow_table()


def found(bodies: list[str | None]) -> dict[str, int]:
    answer = log_patterns(over(bodies), MINUTE)
    assert answer.row_count == sum(one.count for one in answer.patterns) == len(bodies)
    return {one.pattern: one.count for one in answer.patterns}


@pytest.mark.parametrize(
    ("bodies", "patterns"),
    [
        (["paid 3 in 0.5s", "paid 17 in 12ms"], {"paid <*> in <*>": 2}),
        (["user ann logged in", "user bob logged in"], {"user <*> logged in": 2}),
        (["cache hit", "cache miss"], {"cache hit": 1, "cache miss": 1}),
        (
            ["GET /home 200 5 ms", "GET /cart 500 7 ms"],
            {"GET /home <*> <*> ms": 1, "GET /cart <*> <*> ms": 1},
        ),
        (
            ['{"event":"paid","by":"visa","n":1}', '{"event":"paid","by":"cash","n":22}'],
            {'{"event":"paid","by":"<*>","n":<*>}': 2},
        ),
        (["failed\n at line 3", "failed\n at line 4\n at 5"], {"failed": 2}),
        ([None, "", " "], {"": 3}),
        (["<*>", "<*> <*>"], {"<*>": 1, "<*> <*>": 1}),
    ],
)
def test_texts_are_clustered_by_their_fixed_words(
    bodies: list[str | None], patterns: dict[str, int]
) -> None:
    assert found(bodies) == patterns


@given(st.lists(st.text(alphabet='ab 1\n,"<*>\u4e2d', max_size=12), max_size=30))
def test_every_record_is_in_one_pattern(bodies: list[str]) -> None:
    if bodies:
        assert sum(found(list(bodies)).values()) == len(bodies)


def test_many_different_texts_become_one_pattern() -> None:
    """So that few pairs are compared."""
    words = [chr(97 + n // 26) + chr(97 + n % 26) for n in range(200)]
    patterns = found([f"start {word} {word}x {word}y" for word in words])
    assert len(patterns) == LEAF_MAX
    assert patterns["start <*> <*> <*>"] == len(words) - LEAF_MAX + 1


def test_a_pattern_has_a_trend_and_finds_its_records() -> None:
    bodies: list[str | None] = [f"job {n} done" for n in range(90)]
    ask = over(bodies, service_name='a"b', severity_number=17)
    (pattern,) = log_patterns(ask, MINUTE).patterns
    assert (pattern.severity, pattern.service) == ("ERROR", 'a"b')
    assert pattern.trend == {"2026-01-01T00:00:00Z": 60, "2026-01-01T00:01:00Z": 30}
    assert pattern.last_seen - pattern.first_seen == datetime.timedelta(seconds=89)
    assert pattern.query == 'service:"a\\"b" "job" "done"'
    assert query_conditions("logs", pattern.query)


def test_many_records_are_sampled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "ROWS_MAX", 100)
    answer: PatternsAnswer = log_patterns(over(["tick"] * 1000), MINUTE)
    assert (answer.row_count, answer.sampled_every) == (1000, 10)
    assert answer.patterns[0].count == sum(answer.patterns[0].trend.values()) == 1000
