"""Log records page by page, around one of them, and by filters."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from frazil.errors import Malformed
from frazil.model.arrow import LOGS
from frazil.query.search.cursor import Cursor
from frazil.query.search.filters import Ask, attribute_name, column
from frazil.query.search.severity import severity_of
from frazil.query.telemetry.logs import (
    Order,
    facets,
    find_logs,
    histogram,
    logs_around,
    logs_of_trace,
)
from tests.query.build import engine_over, log, piece_of

TRACE = "ab" * 16


def _rows() -> list[dict[str, Any]]:
    """Forty records of only four different times, from two partitions."""
    return [
        log(
            n % 4,
            _log_partition=n % 2,
            _offset=n // 6,
            _row=n,
            body=f"line {n} of the log",
            severity_number=(n % 7) * 4,
            service_name="cart" if n % 3 else "web",
            attributes=[("n", str(n)), ("service_name", "odd")],
            resource_attributes=[("host.name", f"host-{n % 5}")],
            scope_attributes=[("build", "7")],
            trace_id=TRACE if n % 10 == 0 else None,
        )
        for n in range(40)
    ]


ROWS = _rows()


@pytest.fixture(scope="module")
def ask() -> Iterator[Ask]:
    pieces = [piece_of("logs", ROWS[at : at + 8]) for at in range(0, 40, 8)]
    with engine_over({"logs": pieces}) as engine:
        yield lambda sql: engine.sql(sql).arrow()


def numbers(found: Any) -> list[int]:
    return [int(row.attributes["n"]) for row in found]


def expected(order: Order, **which: Any) -> list[int]:
    """The same by sorting a list."""
    places = ("time", "_log_partition", "_offset", "_row")
    kept = [row for row in ROWS if all(row[name] == value for name, value in which.items())]
    ordered = sorted(kept, key=lambda row: tuple(row[name] for name in places))
    return [row["_row"] for row in (ordered if order == "oldest" else reversed(ordered))]


@given(size=st.integers(1, 41), order=st.sampled_from(["newest", "oldest"]), service=st.booleans())
@settings(max_examples=30, deadline=None)
def test_every_row_is_on_one_page(ask: Ask, size: int, order: Order, service: bool) -> None:
    """However many have the same time; a place may be written down and read again."""
    filters = {"service_name": "cart"} if service else {}
    seen: list[int] = []
    after = None
    while page := find_logs(ask, filters=filters, limit=size, order=order, after=after):
        seen += numbers(page)
        after = Cursor.parse(str(page[-1].place))
    assert seen == expected(order, **filters)


def test_a_row_has_all_columns(ask: Ask) -> None:
    (found,) = find_logs(ask, filters={"n": "10"})
    assert found.body == "line 10 of the log"
    assert found.resource_attributes == {"host.name": "host-0"}
    assert found.scope_attributes == {"build": "7"}
    assert (found.severity, found.severity_number) == ("INFO", 12)
    assert found.trace_id == TRACE
    assert found.time.tzinfo is not None


@pytest.mark.parametrize(
    ("which", "fits"),
    [
        ({"filters": {"service_name": "web"}}, lambda n: n % 3 == 0),
        ({"filters": {"severity": "ERROR"}}, lambda n: n % 7 == 5),
        ({"filters": {"severity": ["ERROR", "UNSPECIFIED"]}}, lambda n: n % 7 in (0, 5)),
        ({"filters": {"severity_number": "4"}}, lambda n: n % 7 == 1),
        ({"filters": {"n": ["3", "5", "nobody"]}}, lambda n: n in (3, 5)),
        ({"filters": {"resource.host.name": "host-2"}}, lambda n: n % 5 == 2),
        ({"filters": {"scope.build": "7", "n": "1"}}, lambda n: n == 1),
        ({"filters": {"attribute.service_name": "odd", "n": "1"}}, lambda n: n == 1),
        ({"exclude": {"service_name": "web"}}, lambda n: n % 3 != 0),
        ({"exclude": {"trace_id": TRACE}}, lambda n: n % 10 != 0),
        ({"exclude": {"severity": ["ERROR", "WARN"]}}, lambda n: n % 7 not in (4, 5)),
        ({"min_severity": "warn"}, lambda n: n % 7 >= 4),
        ({"trace_id": TRACE.upper()}, lambda n: n % 10 == 0),
        ({"search": '"line 17"'}, lambda n: n == 17),
        ({"filters": {"n": "x' OR '1'='1"}}, lambda n: False),
    ],
)
def test_filters_select_matching_records(ask: Ask, which: Any, fits: Any) -> None:
    """The same records in a list, in a histogram and in facets."""
    wanted = [n for n in range(40) if fits(n)]
    assert sorted(numbers(find_logs(ask, **which))) == wanted
    bars = histogram(ask, datetime.timedelta(seconds=1), **which)
    assert sum(bar.count for bar in bars) == len(wanted)
    (facet,) = facets(ask, ["severity"], **which)
    counts: dict[str, int] = {}
    for n in wanted:
        word = severity_of(n % 7 * 4)
        counts[word] = counts.get(word, 0) + 1
    assert dict(facet.values) == counts


def test_facets_of_every_kind_of_field(ask: Ask) -> None:
    """Columns, attributes, those of resources and scopes."""
    found = facets(ask, ["resource.host.name", "scope.build", "service_name", "severity_number"])
    assert dict(found[0].values) == {f"host-{n}": 8 for n in range(5)}
    assert dict(found[1].values) == {"7": 40}
    assert dict(found[2].values) == {"cart": 26, "web": 14}
    assert dict(found[3].values)["0"] == 6


def test_neighbors_of_a_record(ask: Ask) -> None:
    """Of the same service, on both sides, in the order of time; None when it is not here."""
    order = expected("oldest", service_name="cart")
    (middle,) = find_logs(ask, filters={"n": str(order[9])})
    found = logs_around(ask, middle.place, count=4, filters={"service_name": "cart"})
    assert found is not None
    assert found.row == middle
    assert numbers(found.before) == order[5:9]
    assert numbers(found.after) == order[10:14]
    assert logs_around(ask, Cursor(time_us=0, partition=0, offset=0, row=0)) is None


def test_logs_of_a_trace(ask: Ask) -> None:
    assert numbers(logs_of_trace(ask, TRACE)) == expected("oldest", trace_id=TRACE)


@given(st.integers(-(2**63) + 1, 2**63 - 1), st.integers(0, 2**31 - 1), st.integers(0, 2**63 - 1))
def test_a_cursor_round_trips_as_text(time_us: int, small: int, offset: int) -> None:
    place = Cursor(time_us=time_us, partition=small, offset=offset, row=small)
    assert Cursor.parse(str(place)) == place


@pytest.mark.parametrize("written", ["", "1-2-3", "1-2-3-x", "1-2-3-4 OR 1=1", f"{2**63}-0-0-0"])
def test_invalid_cursors_are_refused(written: str) -> None:
    with pytest.raises(Malformed, match="not a cursor"):
        Cursor.parse(written)


@given(st.text())
def test_an_attribute_is_found_by_its_name(key: str) -> None:
    """Whatever its key looks like."""
    quoted = key.replace("'", "''")
    of_record = f"attributes['{quoted}']"
    found = column(attribute_name(key, LOGS), LOGS)
    assert found == of_record or found.startswith(f"coalesce({of_record}, ")


@pytest.mark.parametrize("key", ["body", "resource.x", "scope.", "attribute.y", "resource."])
def test_reserved_attribute_keys_are_prefixed(key: str) -> None:
    assert column(attribute_name(key, LOGS), LOGS) == f"attributes['{key}']"


def test_wrong_filters_are_refused(ask: Ask) -> None:
    wrong: tuple[tuple[Any, str], ...] = (
        ({"min_severity": "LOUD"}, "not a severity"),
        ({"filters": {"attributes": "x"}}, "many values"),
        ({"filters": {"n": []}}, "0 values"),
        ({"filters": {str(n): "x" for n in range(33)}}, "at most 32"),
    )
    for which, match in wrong:
        with pytest.raises(Malformed, match=match):
            find_logs(ask, **which)
