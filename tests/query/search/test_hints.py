"""Why a search has no rows, and what is suggested instead: each suggestion has rows."""

from __future__ import annotations

import datetime
from collections.abc import Iterator

import pytest

from frazil.query import (
    Ask,
    TimeRange,
    ambiguity_notes,
    fields_of,
    find_logs,
    hints_of,
)
from tests.query.build import BEGIN_US, engine_over, log, piece_of

DAY_US = 86_400_000_000
TRACE = "ab" * 16


@pytest.fixture(scope="module")
def ask() -> Iterator[Ask]:
    """Records of one minute, and others a day earlier."""
    rows = [
        log(
            n + (DAY_US // 1_000_000 if n % 2 else 0),
            _row=n,
            service_name="checkout" if n % 2 else "payment",
            body=("retry user_id=42", "it is late")[n % 2],
            trace_id=TRACE if n == 1 else None,
            attributes=[("http.route", "/cart"), ("zone", "z1")],
            resource_attributes=[("k8s.node.name", "node-a"), ("zone", "z2")],
        )
        for n in range(10)
    ]
    with engine_over({"logs": [piece_of("logs", rows)]}) as engine:
        yield lambda text: engine.sql(text).arrow()


def at(us: int) -> datetime.datetime:
    epoch = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
    return epoch + datetime.timedelta(microseconds=us)


LATER = TimeRange(since=at(BEGIN_US + DAY_US), until=at(BEGIN_US + DAY_US + 60_000_000))
"""Has the records of checkout only."""


@pytest.mark.parametrize(
    ("query", "reason", "suggested"),
    [
        ("servce.name:checkout", "has the field servce.name", "service_name:checkout"),
        ("late AND node.name=node-a", "has the field node.name", "late AND k8s.node.name=node-a"),
        ("http.rout:/cart late", "has the field http.rout", "http.route:/cart late"),
        ("service:Chekout", "service exists, but no", "service:checkout"),
        (f"late {TRACE}", f"matches {TRACE}", f"late trace:{TRACE}"),
        ("late nonsense", "matches nonsense", "late"),
    ],
)
def test_the_nearest_query_is_suggested(ask: Ask, query: str, reason: str, suggested: str) -> None:
    hints = hints_of(ask, "logs", query=query, within=LATER)
    assert reason in hints.reason
    assert suggested in [each.query for each in hints.suggestions if each.kind == "query"]
    assert find_logs(ask, query=suggested, within=LATER)


@pytest.mark.parametrize("query", ["service:payment", "retry", "", "user_id=42"])
def test_the_nearest_time_range_is_suggested(ask: Ask, query: str) -> None:
    """Before the searched range if there is one, else after it."""
    empty = TimeRange(since=at(BEGIN_US + DAY_US // 2), until=at(BEGIN_US + DAY_US // 2 + 1))
    hints = hints_of(ask, "logs", query=query.replace("user_id=42", '"user_id=42"'), within=empty)
    (near,) = hints.suggestions
    assert "in this time range" in hints.reason
    found = find_logs(ask, query=near.query, within=TimeRange(since=near.since, until=near.until))
    assert {row.service_name for row in found} == {"payment"}
    before = TimeRange(since=at(0), until=at(1))
    (after,) = hints_of(ask, "logs", within=before).suggestions
    assert find_logs(ask, within=TimeRange(since=after.since, until=after.until))


def test_text_that_looks_like_a_field(ask: Ask) -> None:
    hints = hints_of(ask, "logs", query="user_id=42")
    assert '"user_id=42"' in [each.query for each in hints.suggestions]
    assert hints.reason == "No log record has the field user_id."


def test_other_reasons(ask: Ask) -> None:
    assert hints_of(ask, "logs", query="late").reason == "", "it has rows"
    beside = hints_of(ask, "logs", filters={"http.route": "/no"}, query="late")
    assert "the filters beside the search" in beside.reason
    both = hints_of(ask, "logs", query="late service:payment")
    assert "no log record matches all of them" in both.reason
    assert "There are no spans yet" in hints_of(ask, "spans", query="a:b").reason


def test_a_name_of_two_attributes_is_said(ask: Ask) -> None:
    fields = fields_of(ask, "logs", limit=1000)
    (note,) = ambiguity_notes(fields, ["zone", "http.route", "k8s.node.name"])
    assert "write attribute.zone or resource.zone" in note
    assert len(find_logs(ask, query="zone:z1")) == len(find_logs(ask, query="resource.zone:z2"))
    assert not find_logs(ask, query="zone:z2")
