"""Places in a long list of logs, names to complete, and a question as SQL."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from frazil.errors import Malformed
from frazil.query.search.cursor import Cursor
from frazil.query.search.facets import facets_of
from frazil.query.search.fields import fields_of
from frazil.query.search.filters import Ask, TimeRange
from frazil.query.search.render import search_sql
from frazil.query.telemetry import log_pages as pages_module
from frazil.query.telemetry.log_pages import log_pages
from frazil.query.telemetry.logs import Order, find_logs
from tests.query.build import engine_over, log, piece_of

COUNT = 60


def _log(n: int) -> dict[str, Any]:
    """Many have the same time, and come from two partitions."""
    attributes = [("http.route", "/"), ("level", "x"), *([("user.id", str(n))] if n % 4 else [])]
    return log(
        n % 7,
        _log_partition=n % 2,
        _offset=n // 6,
        _row=n,
        service_name="cart" if n % 3 else "web",
        attributes=attributes,
        host_name="a",
        resource_attributes=[("host.name", "a")],
        scope_attributes=[("build", "7")] if n == 1 else [],
    )


ROWS = [_log(n) for n in range(COUNT)]


@pytest.fixture(scope="module")
def ask() -> Iterator[Ask]:
    pieces = [piece_of("logs", ROWS[at : at + 8]) for at in range(0, COUNT, 8)]
    with engine_over({"logs": pieces}) as engine:
        yield lambda sql: engine.sql(sql).arrow()


def everything(ask: Ask, order: Order, **which: Any) -> list[str]:
    return [row.cursor for row in find_logs(ask, limit=1000, order=order, **which)]


@given(
    every=st.integers(1, COUNT + 1),
    order=st.sampled_from(["newest", "oldest"]),
    query=st.sampled_from(["", "service:cart", "service:nobody"]),
)
@settings(max_examples=40, deadline=None)
def test_a_cursor_leads_to_its_page(ask: Ask, every: int, order: Order, query: str) -> None:
    """Each is that of the last record before a page, and every page has one."""
    wanted = everything(ask, order, query=query)
    found = log_pages(ask, every=every, order=order, query=query)
    assert (found.count, found.every, found.is_cut) == (len(wanted), every, False)
    assert list(found.cursors) == [
        wanted[at - 1] for at in range(every, len(wanted), every) if at < len(wanted)
    ]
    if found.cursors:
        number = len(found.cursors) // 2
        after = Cursor.parse(found.cursors[number])
        assert everything(ask, order, query=query, after=after) == wanted[(number + 1) * every :]


@pytest.mark.parametrize("order", ["newest", "oldest"])
@pytest.mark.parametrize("rows_max", [5, 9, 30, 59])
def test_only_the_first_million_records_have_cursors(
    ask: Ask, monkeypatch: pytest.MonkeyPatch, order: Order, rows_max: int
) -> None:
    """As many whole moments as can be read; the count is that of all."""
    monkeypatch.setattr(pages_module, "ROWS_MAX", rows_max)
    monkeypatch.setattr(pages_module, "PARTS", 3)
    wanted = everything(ask, order)
    found = log_pages(ask, every=2, order=order)
    assert (found.count, found.is_cut) == (COUNT, True)
    seconds = [int(cursor.partition("-")[0]) for cursor in wanted]
    whole = max(n for n in range(rows_max + 1) if n == 0 or seconds[n - 1] != seconds[n])
    assert list(found.cursors) == wanted[1:whole:2]


def test_too_many_records_of_one_microsecond(ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages_module, "ROWS_MAX", 3)
    found = log_pages(ask, every=2)
    assert (found.count, found.cursors, found.is_cut) == (COUNT, (), True)


def test_field_names_for_completion(ask: Ask) -> None:
    """Columns first, then attributes by how many rows have them; each spelled so that it means
    itself in the box and in filters."""
    found = fields_of(ask, "logs", limit=1000)
    kinds = [field.kind for field in found]
    assert kinds == sorted(kinds, key=lambda kind: kind != "column")
    assert {"severity", "service_name", "body"} <= {
        field.name for field in found if field.kind == "column"
    }
    assert [(field.name, field.kind, field.count) for field in found if field.count] == [
        ("http.route", "attribute", 60),
        ("attribute.level", "attribute", 60),
        ("host.name", "resource", 60),
        ("user.id", "attribute", 45),
        ("scope.build", "scope", 1),
    ]
    for field in found:
        if field.count:
            assert log_pages(ask, query=f"{field.name}:*").count == field.count
    assert [field.name for field in fields_of(ask, "logs", prefix="ROU")] == ["http.route"]
    assert [field.name for field in fields_of(ask, "logs", prefix="service_n", limit=1)] == [
        "service_name"
    ]
    never = TimeRange(until=datetime.datetime(2000, 1, 1, tzinfo=datetime.UTC))
    assert all(field.count is None for field in fields_of(ask, "logs", within=never))


@pytest.mark.parametrize("limit", [1, 2, 3])
def test_the_total_counts_unlisted_values(ask: Ask, limit: int) -> None:
    """Whether all values are shown or not."""
    found = facets_of(ask, "logs", ["service_name"], [], limit=limit)
    assert found.total == COUNT
    assert found.facets[0].values == (("cart", 40), ("web", 20))[:limit]
    assert facets_of(ask, "logs", [], ["service_name = 'web'"]).total == 20


def test_facets_accept_search_box_names(ask: Ask) -> None:
    """So that values of what is typed can be offered; an attribute of that name has another."""
    found = facets_of(ask, "logs", ["service", "level", "attribute.level"], []).facets
    assert [dict(facet.values) for facet in found] == [
        {"cart": 40, "web": 20},
        {"INFO": COUNT},
        {"x": COUNT},
    ]


def test_a_search_becomes_readable_sql(ask: Ask) -> None:
    """The SQL is readable and finds the same rows."""
    sql = search_sql(
        "logs",
        since=datetime.timedelta(days=7),
        until=datetime.datetime(2026, 9, 21, 15, tzinfo=datetime.UTC),
        filters={"service_name": ["cart", "web"], "level": "x"},
        exclude={"user.id": "7", "severity": "ERROR"},
        search="line",
        min_severity="INFO",
        query="service:cart -attribute.http.route:/x",
    )
    assert sql.splitlines() == [
        "SELECT time, severity_text, service_name, body, trace_id, attributes",
        "FROM logs",
        "WHERE time >= now() - INTERVAL '7 days'",
        "  AND time < TIMESTAMP '2026-09-21 15:00:00Z'",
        "  AND service_name IN ('cart', 'web')",
        "  AND attributes['level'] = 'x'",
        "  AND (coalesce(attributes['user.id'], resource_attributes['user.id']) "
        "IS DISTINCT FROM '7')",
        "  AND severity_number NOT BETWEEN 17 AND 20",
        "  AND severity_number >= 9",
        "  AND matches(body, 'line')",
        "  AND service_name = 'cart'",
        "  AND (attributes['http.route'] IS DISTINCT FROM '/x')",
        "ORDER BY time DESC",
        "LIMIT 100",
    ]
    assert ask(sql).num_rows == sum(n % 3 != 0 and n != 7 for n in range(COUNT))


@pytest.mark.parametrize("table", ["logs", "spans"])
@pytest.mark.parametrize("ago", [90, 120, 7200, 86_400])
def test_sql_of_any_search_runs(ask: Ask, table: str, ago: int) -> None:
    """Also where a filter has a text that its column cannot have."""
    since = datetime.timedelta(seconds=ago)
    assert ask(search_sql(table, since=since, filters={"flags": "many"})).num_rows == 0
    early = datetime.datetime(1900, 1, 1, tzinfo=datetime.UTC)
    late = datetime.datetime(2600, 1, 1, tzinfo=datetime.UTC)
    rows = ask(search_sql(table, since=early, until=late, exclude={"flags": "many"}))
    assert rows.num_rows == (COUNT if table == "logs" else 0)


def test_errors_of_filters_have_no_position() -> None:
    with pytest.raises(Malformed) as caught:
        search_sql("logs", filters={"attributes": "x"})
    assert caught.value.end is None
