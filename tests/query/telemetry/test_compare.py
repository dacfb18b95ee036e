"""Two versions and two time ranges of a service, on rows whose differences can be counted."""

from __future__ import annotations

import datetime
from typing import Any

import datafusion
import pyarrow as pa
import pytest

from frazil.model.arrow import LOGS, SPANS
from frazil.query.search.filters import Ask, TimeRange
from frazil.query.telemetry.compare import Selection, compare

WHERE = "frazil.query.telemetry.compare"
BEGIN = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
MIDDLE = BEGIN + datetime.timedelta(seconds=100)
END = BEGIN + datetime.timedelta(seconds=200)
MS = 1_000_000


def rows_of(at: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """A request and its log record; from second 100 on, of version 2, which has become slow, fails
    every fourth time, and says so."""
    is_new = at >= 100
    is_failed = is_new and at % 4 == 0
    common = {
        "time": BEGIN + datetime.timedelta(seconds=at),
        "service_name": "web",
        "_offset": at,
        "_row": 0,
        "resource_attributes": [
            ("service.version", "2" if is_new else "1"),
            ("service.instance.id", str(at // 100)),
        ],
    }
    span = {
        **common,
        "kind": "SERVER",
        "name": "GET /new" if is_failed else "GET /",
        "duration_nano": (300 if is_new else 100) * MS,
        "status_code": "ERROR" if is_failed else "UNSET",
        "attributes": [("user", f"u{at}"), ("plan", "free" if at % 2 else "paid")]
        + [("cache", "miss")] * is_failed,
    }
    body = (
        f"no page {at}"
        if is_failed
        else f"page {at} sent to ann"
        if is_new
        else f"page {at} sent to bob"
    )
    return span, {**common, "severity_number": 17 if is_failed else 9, "body": body}


@pytest.fixture(scope="module")
def ask() -> Ask:
    spans, logs = zip(*(rows_of(at) for at in range(200)), strict=True)
    inner = {**spans[0], "kind": "INTERNAL", "parent_span_id": "1", "duration_nano": 0}
    other = {**spans[0], "service_name": "other"}
    context = datafusion.SessionContext()
    for name, rows, schema in (("spans", [*spans, inner, other], SPANS), ("logs", logs, LOGS)):
        loose = pa.schema([field.with_nullable(True) for field in schema])
        table = pa.Table.from_pylist(list(rows), loose)
        context.register_record_batches(name, [table.to_batches()])
    return lambda sql: context.sql(sql).to_arrow_table()


VERSIONS = [
    Selection(service="web", within=TimeRange(since=BEGIN, until=END), version=version)
    for version in ("1", "2")
]
RANGES = [
    Selection(service="web", within=TimeRange(since=since, until=until))
    for since, until in ((BEGIN, MIDDLE), (MIDDLE, END))
]


@pytest.mark.parametrize(("baseline", "current"), [VERSIONS, RANGES], ids=["versions", "ranges"])
def test_what_changed_is_found(ask: Ask, baseline: Selection, current: Selection) -> None:
    """By versions or by time ranges: both cut the same rows."""
    found = compare(ask, baseline, current)
    assert (found.baseline.request_count, found.current.request_count) == (100, 100)
    assert (found.baseline.error_count, found.current.error_count) == (0, 25)
    assert (found.baseline.p95_nano, found.current.p95_nano) == (100 * MS, 300 * MS)
    assert found.current.rate == pytest.approx(1, rel=0.02)
    operations = {one.operation: (one.baseline, one.current) for one in found.operations}
    assert operations.keys() == {"GET /", "GET /new"}
    before, after = operations["GET /new"]
    assert before is None and after is not None and after.request_count == 25
    attributes = {(one.name, one.value): one for one in found.attributes}
    change = attributes.pop(("cache", "miss"))
    assert (change.baseline_share, change.current_share) == (0, 0.25)
    by_instance = {("resource.service.version", "1"), ("resource.service.version", "2")}
    by_instance |= {("resource.service.instance.id", "0"), ("resource.service.instance.id", "1")}
    assert attributes.keys() == (set() if current.version else by_instance)
    # "bob" and "ann" differ, but are one pattern: both sides are clustered together.
    assert [(one.pattern, one.severity, one.count) for one in found.new_patterns] == [
        ("no page <*>", "ERROR", 25)
    ]
    assert found.gone_patterns == []
    reverse = compare(ask, current, baseline)
    assert [one.pattern for one in reverse.gone_patterns] == ["no page <*>"]


def test_a_side_without_requests_is_empty(ask: Ask) -> None:
    nothing = Selection(service="web", within=TimeRange(until=BEGIN))
    found = compare(ask, nothing, RANGES[1])
    assert (found.baseline.request_count, found.baseline.p95_nano) == (0, None)
    assert found.baseline.rate == 0


def test_of_many_rows_a_sample_is_read(ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    """Patterns and shares are estimated; requests and latencies stay exact."""
    whole = compare(ask, *VERSIONS)
    assert whole.records_sampled_every == 1
    monkeypatch.setattr(f"{WHERE}.REQUESTS_READ_MAX", 50)
    monkeypatch.setattr(f"{WHERE}.RECORDS_READ_MAX", 50)
    found = compare(ask, *VERSIONS)
    assert found.records_sampled_every == 2
    assert (found.baseline, found.current) == (whole.baseline, whole.current)
    # Failures are at multiples of four, so every one of them is in a sample of even offsets.
    assert [(one.pattern, one.count) for one in found.new_patterns] == [("no page <*>", 50)]
    (change,) = (one for one in found.attributes if one.name == "cache")
    assert (change.baseline_share, change.current_share) == (0, 0.5)
