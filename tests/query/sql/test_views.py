"""Views of users: expanded by the planner, bounded, and clear about what is wrong with them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from frazil.definitions import Definitions, parse_statement
from frazil.disk import write_whole
from frazil.errors import Conflict, FrazilError, Unknown
from frazil.model import SystemClock
from frazil.model.arrow import TABLES
from frazil.query import Engine
from frazil.query.plan.session import VIEWS
from frazil.query.sql.entry_spans import VIEW as ENTRY_SPANS
from frazil.query.sql.table_names import VIEW_NAMES
from frazil.query.sql.views import DEPTH_MAX, ViewDefinition, views_for
from frazil.settings import QueryConfig
from tests.query.build import log, piece_of
from tests.sim.disk import SimDisk

LOGS = [
    log(0, attributes=[("code", "200")], severity_number=9),
    log(30, attributes=[("code", "500")], severity_number=17),
    log(61, service_name="cart", severity_number=17, body="Payment refused"),
    log(90, service_name="cart", severity_number=9, body=None),
]
DEFINED = {
    "failed": "SELECT *, attributes['code'] AS code FROM logs WHERE severity_number >= 17",
    "failed_web": "SELECT time, body, code FROM failed WHERE service_name = 'web'",
    "by_service": "SELECT service_name, count(*) AS n FROM logs GROUP BY 1",
    "buckets": "SELECT time_bucket('1 minute', time) AS minute, _offset FROM logs",
    "numbers": "WITH x AS (SELECT 1 AS a) SELECT a FROM x",
    "entries": "SELECT trace_id FROM entry_spans",
    "broken": "SELECT * FROM gone_table",
    "over_broken": "SELECT * FROM broken",
    "circle_a": "SELECT * FROM circle_b",
    "circle_b": "SELECT * FROM circle_a",
}


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    definitions = Definitions(disk := SimDisk())
    for name, query in DEFINED.items():
        definitions.put(parse_statement(f"CREATE VIEW {name} AS {query}"))
    write_whole(disk, "definitions/view/damaged.sql", [b"CREATE VIEW damaged AS SELECT '"])
    pieces = {"logs": (piece_of("logs", LOGS[:2]), piece_of("logs", LOGS[2:]))}
    with Engine.open(
        lambda: pieces,
        TABLES,
        QueryConfig(),
        SystemClock(),
        definitions=Definitions(disk),
    ) as opened:
        yield opened


def rows_of(engine: Engine, text: str) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in engine.sql(text).arrow().to_pylist()]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT _offset, code FROM failed ORDER BY 1", [(30, "500"), (61, None)]),
        ("SELECT count(*) FROM failed", [(2,)]),
        ("SELECT code FROM failed_web", [("500",)]),
        ("SELECT body FROM FAILED_WEB AS f JOIN numbers ON a = 1", [("line 30",)]),
        (
            "SELECT service_name, count(*) FROM failed GROUP BY 1 ORDER BY 1",
            [("cart", 1), ("web", 1)],
        ),
        ("SELECT n FROM by_service WHERE service_name = 'cart'", [(2,)]),
        ("SELECT sum(n) FROM by_service", [(4,)]),
        ("SELECT count(*) FROM by_service", [(2,)]),
        ("SELECT count(DISTINCT minute) FROM buckets", [(2,)]),
        ("SELECT a FROM numbers", [(1,)]),
        ("SELECT count(*) FROM entries", [(0,)]),
        ("SELECT count(*) FROM failed f JOIN logs l ON f._offset = l._offset", [(2,)]),
        ("WITH broken AS (SELECT 7 AS x) SELECT x FROM broken", [(7,)]),
        ("SELECT 'broken' AS broken", [("broken",)]),
        ("SELECT time FROM failed ORDER BY time DESC LIMIT 1", None),
    ],
)
def test_views_are_read_like_tables(
    engine: Engine, text: str, expected: list[tuple[Any, ...]] | None
) -> None:
    """Virtual columns, views over views, aggregates, views beside tables."""
    rows = rows_of(engine, text)
    if expected is None:
        assert rows == rows_of(engine, f"SELECT time FROM logs WHERE _offset = {61}")
    else:
        assert rows == expected


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("SELECT * FROM broken", "view broken cannot be read: no table gone_table"),
        ("SELECT * FROM over_broken", "view broken cannot be read"),
        ("SELECT * FROM circle_a", "refers to itself: circle_a -> circle_b -> circle_a"),
        ("SELECT * FROM damaged", r"definitions/view/damaged\.sql"),
        ("SELECT * FROM failed FOR SYSTEM_VERSION AS OF 1", "cannot be read AS OF"),
        ("SELECT nope FROM failed_web", "no column nope"),
        ("DROP VIEW failed", "read-only"),
        ("CREATE VIEW x AS SELECT 1", "read-only"),
    ],
)
def test_what_is_wrong_is_said(engine: Engine, text: str, why: str) -> None:
    """A view that cannot be expanded says which and why; the reading door changes nothing."""
    with pytest.raises(FrazilError, match=why):
        engine.sql(text).arrow()


def test_views_are_listed(engine: Engine) -> None:
    """information_schema has the views that can be read, with their columns."""
    text = "SELECT table_name FROM information_schema.tables WHERE table_type = 'VIEW'"
    names = {name for (name,) in rows_of(engine, text)}
    assert {"failed", "failed_web", "by_service"} <= names
    assert names.isdisjoint({"broken", "circle_a", "damaged"})
    text = "SELECT column_name FROM information_schema.columns WHERE table_name = 'failed_web'"
    assert [name for (name,) in rows_of(engine, text)] == ["time", "body", "code"]
    assert engine.view_problem("failed") is None
    assert "gone_table" in (engine.view_problem("broken") or "")


@pytest.mark.parametrize(
    ("name", "query", "kind", "why"),
    [
        ("logs", "SELECT 1", Conflict, "name of a table"),
        ("snapshots", "SELECT 1", Conflict, "name of a table"),
        ("gauges", "SELECT 1", Conflict, "name of a table"),
        ("topic_x", "SELECT 1", Conflict, "reserved"),
        ("_x", "SELECT 1", Conflict, "reserved"),
        ("v", "SELECT * FROM v", Unknown, "refers to itself"),
        ("failed", "SELECT * FROM failed_web", Unknown, "refers to itself"),
        ("v", "SELECT * FROM nowhere", Unknown, "no table nowhere"),
        ("v", "SELECT * FROM logs FOR SYSTEM_VERSION AS OF 1", Unknown, "cannot have FOR SYSTEM"),
        ("v", "SELECT * FROM '/etc/passwd'", FrazilError, "no table"),
        ("v", "SELECT 1; DROP TABLE x", FrazilError, "one statement"),
        ("v", "SELECT 1 INTO x", FrazilError, "read-only"),
        ("v", "SELECT nothing(1)", Unknown, "no function"),
    ],
)
def test_a_view_is_checked_before_it_is_defined(
    engine: Engine, name: str, query: str, kind: type[FrazilError], why: str
) -> None:
    """Its query is planned by the read-only planner; names of tables are taken."""
    with pytest.raises(kind, match=why):
        engine.check_view(name, query)
    assert engine.check_view("v", "SELECT a + 1 AS b FROM numbers").names == ["b"]


def test_expansion_is_bounded() -> None:
    """Depth and size have limits: no chain of views makes a plan without end."""
    deep = {f"v{n}": ViewDefinition(query=f"SELECT * FROM v{n + 1}") for n in range(DEPTH_MAX + 3)}
    assert "views over views" in views_for("SELECT * FROM v0", deep).failures[f"v{DEPTH_MAX}"]
    wide = {
        f"w{n}": ViewDefinition(query=" UNION ALL ".join([f"SELECT * FROM w{n + 1}"] * 20))
        for n in range(6)
    }
    failures = views_for("SELECT * FROM w0", wide).failures
    assert any("more than" in reason for reason in failures.values())
    assert views_for("SELECT 1", {**deep, **wide}).texts == ()


def test_the_built_in_views_are_known() -> None:
    """Names that a view cannot have follow from the views that sessions have."""
    assert {*VIEWS, ENTRY_SPANS} == {*VIEW_NAMES}
