"""The language of the search box, and what it finds."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from frazil.errors import Malformed
from frazil.query import Engine, query_conditions
from frazil.query.functions import search_parser as parser
from frazil.query.functions.search_parser import parse
from frazil.query.search.filters import where
from frazil.query.sql.entry_spans import is_entry
from tests.pages import ROOT
from tests.query.build import BEGIN_US, engine_over, log, piece_of

HOSTILE = ("it's", "'; DROP TABLE logs; --", "100%", "a_b", "back\\slash", 'say "hi"', "line\nend")
NUMBERS = ("500", "404", "1.5", "-3", "1e3", " 7 ", "1e400", "NaN", "abc", "0x10", "5_0", "१", "")
ROUTES = ("/api/cart", "/api/health", "/", "/API/cart", "")
BODIES = (
    "payment of order 7 timed out",
    "Connection refused by 10.0.0.1",
    "the connection was refused",
    "payments are off",
    "",
    None,
)
SEVERITIES = ("TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL")
TRACE = "ab" * 16


def _attributes(n: int) -> list[tuple[str, str]]:
    pairs = [
        ("http.route", ROUTES[n % len(ROUTES)]),
        ("number", NUMBERS[n % len(NUMBERS)]),
        ("odd key", HOSTILE[n % len(HOSTILE)]),
        ("level", "9000"),
        ("zone", "of the record"),
        ("host.name", "node-x"),
    ]
    return [pair for at, pair in enumerate(pairs) if (n >> at) % 4]


LOGS = [
    log(
        n,
        _row=n,
        service_name=("web", "cart", "check out", "it's")[n % 4],
        severity_number=n % 27,
        host_name=(None, "node-a", "node-b")[n % 3],
        flags=n % 3,
        body=BODIES[n % len(BODIES)],
        trace_id=TRACE if n % 5 == 0 else None,
        attributes=_attributes(n),
        resource_attributes=[("zone", "a*b")] if n % 2 else [],
    )
    for n in range(54)
]
SPANS = [
    {
        "_row": n,
        "time": BEGIN_US + n,
        "time_unix_nano": (BEGIN_US + n) * 1000,
        "service_name": ("web", "cart")[n % 2],
        "name": ("GET /cart", "POST /orders", "charge")[n % 3],
        "kind": ("SERVER", "CLIENT", "INTERNAL")[n % 3],
        "status_code": ("UNSET", "OK", "ERROR")[n // 2 % 3],
        "duration_nano": n * 500_000,
        "trace_id": TRACE,
        "span_id": f"{n:016x}",
        "http_response_status_code": (None, 200, 404, 500, 503)[n % 5],
        "attributes": _attributes(n),
    }
    for n in range(40)
]
ROWS: dict[str, list[dict[str, Any]]] = {"logs": LOGS, "spans": SPANS}


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    pieces = {
        table: [piece_of(table, rows[at : at + 20]) for at in range(0, len(rows), 20)]
        for table, rows in ROWS.items()
    }
    with engine_over(pieces) as opened:
        yield opened


def found(engine: Engine, table: str, query: str) -> list[int]:
    rows = engine.sql(f"SELECT _row FROM {table} {where(query_conditions(table, query))}")
    return sorted(number for (number,) in rows.fetchall())


# A slow reading of the tree, row by row, that shares nothing with what makes SQL of it.


def fits(table: str, node: parser.Node, row: dict[str, Any]) -> bool:
    if isinstance(node, parser.All):
        return all(fits(table, each, row) for each in node.nodes)
    if isinstance(node, parser.Any):
        return any(fits(table, each, row) for each in node.nodes)
    if isinstance(node, parser.Not):
        return not fits(table, node.node, row)
    if isinstance(node, parser.Phrase):
        return has_words(row["body" if table == "logs" else "name"], node)
    return any(passes(table, node.name, test, row) for test in node.tests)


def has_words(text: str | None, node: parser.Phrase) -> bool:
    wanted = re.findall(r"\w+", node.text.lower())
    there = re.findall(r"\w+", (text or "").lower())
    last = r"\w*" if node.is_prefix else ""
    pattern = " ".join(map(re.escape, wanted)) + last
    return re.search(rf"(?:^| ){pattern}(?: |$)", " ".join(there)) is not None


def value_of(table: str, name: str, test: parser.Test, row: dict[str, Any]) -> Any:
    name = {
        "service": "service_name",
        "service.name": "service_name",
        "trace": "trace_id",
        "span": "span_id",
    }.get(name, name)
    if table == "spans" and name == "status":
        is_word = isinstance(test, parser.Equals) and test.value.upper() in ("UNSET", "OK", "ERROR")
        name = "status_code" if is_word else "http_response_status_code"
    if table == "spans" and name in ("duration", "duration_ms"):
        return Decimal(row["duration_nano"]) / 1_000_000
    if name == "time":
        return moment(row["time"])
    if name in row and name != "attributes":
        return row[name]
    if name.startswith("resource."):
        return dict(row.get("resource_attributes", ())).get(name.removeprefix("resource."))
    of_record = dict(row["attributes"]).get(name.removeprefix("attribute."))
    if of_record is not None or name.startswith("attribute."):
        return of_record
    if name == "host.name":
        return row.get("host_name")
    return dict(row.get("resource_attributes", ())).get(name)


def moment(time_us: int) -> datetime.datetime:
    epoch = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
    return epoch + datetime.timedelta(microseconds=time_us)


def passes(table: str, name: str, test: parser.Test, row: dict[str, Any]) -> bool:
    if table == "logs" and name in ("severity", "level"):
        return passes_severity(test, row["severity_number"])
    value = value_of(table, name, test, row)
    if value is None:
        return False
    if isinstance(test, parser.Exists):
        return True
    if isinstance(test, parser.Like):
        pattern = ".*".join(map(re.escape, test.pieces))
        return re.fullmatch(pattern, str(value), re.DOTALL) is not None
    if isinstance(test, parser.Equals):
        if isinstance(value, int | Decimal):
            return milliseconds(test.value) == value
        if isinstance(value, datetime.datetime):
            return value == datetime.datetime.fromisoformat(test.value)
        if name in ("kind", "status", "status_code"):
            return bool(value == test.value.upper())
        return bool(value == (test.value.lower() if name.startswith("trace") else test.value))
    number = value if not isinstance(value, str) else number_of(value)
    if isinstance(test, parser.Compare):
        return compares(number, test.sign, test.value)
    return (test.low is None or compares(number, ">=", test.low)) and (
        test.high is None or compares(number, "<=", test.high)
    )


def number_of(text: str) -> Decimal | None:
    """A text as a number; none is more than what is no number by its own account."""
    if text == "NaN":
        return Decimal("Infinity")
    is_number = re.fullmatch(r" *[-+]?\d+(\.\d+)?(e\d+)? *", text, re.ASCII)
    return Decimal(text.strip()) if is_number else None


def milliseconds(text: str) -> Decimal:
    """A number; with a unit, in milliseconds."""
    units = {"us": "0.001", "ms": "1", "s": "1000", "m": "60000"}
    number, unit = re.fullmatch(r"(.*?)(us|ms|s|m|)", text).groups()  # type: ignore[union-attr]
    return Decimal(number) * Decimal(units.get(unit, "1"))


def compares(value: Any, sign: str, other: str) -> bool:
    if value is None:
        return False
    edge: Any = milliseconds(other) if not isinstance(value, datetime.datetime) else None
    if edge is None:
        edge = datetime.datetime.fromisoformat(other)
    signs = {"<": value < edge, "<=": value <= edge, ">": value > edge, ">=": value >= edge}
    return bool(signs[sign])


def passes_severity(test: parser.Test, number: int) -> bool:
    if isinstance(test, parser.Equals) and test.value.upper() == "UNSPECIFIED":
        return not 1 <= number <= 24
    known = 1 <= number <= 24
    if isinstance(test, parser.Exists):
        return known
    rank = (number - 1) // 4
    if isinstance(test, parser.Between):
        low = 0 if test.low is None else SEVERITIES.index(test.low.upper())
        high = 5 if test.high is None else SEVERITIES.index(test.high.upper())
        return known and low <= rank <= high
    assert not isinstance(test, parser.Like)
    wanted = SEVERITIES.index(test.value.upper())
    if isinstance(test, parser.Equals):
        return known and rank == wanted
    if test.sign in (">", ">="):  # numbers above those with a word are very bad
        return rank > wanted or (test.sign == ">=" and rank == wanted)
    return known and (rank < wanted or (test.sign == "<=" and rank == wanted))


def expected(table: str, query: str) -> list[int]:
    node = parse(query)
    return [row["_row"] for row in ROWS[table] if node is None or fits(table, node, row)]


# Queries.


def quoted(value: str) -> str:
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'


TEXTS = st.sampled_from([*HOSTILE, *ROUTES, *NUMBERS, "web", "cart", "it's", "a*b"]).map(quoted)
PATTERNS = st.sampled_from(
    ["/api/*", "*cart", "*/c*", "*", "**", "a_b*", "*%", "1*", "*'*", "*\\*", "/*", "*e*e*"]
)
EDGES = st.sampled_from(["0", "-3", "+7", "1.5", "404", "500", "1e3", "99999999999", ".5", "1e-9"])
SIGNS = st.sampled_from(["<", "<=", ">", ">="])
RANGES = st.builds("{}..{}".format, st.just("*") | EDGES, EDGES)
COMPARISONS = st.builds("{}{}".format, SIGNS, EDGES) | RANGES
DURATIONS = st.sampled_from(["5", "5ms", "1.5ms", "500us", "0.01s", "1m", "2.5ms..0.01s"])
WORDS = st.sampled_from(
    ["payment", "pay*", "REFUSED", '"connection refused"', "10.0.0.1", "order-7", "cart", "10.0*"]
)
LEVELS = st.sampled_from([*SEVERITIES, *map(str.lower, SEVERITIES)])


def one_or_several(values: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """One value, or a list of them."""
    several = st.lists(values, min_size=1, max_size=3).map(lambda some: f"({' OR '.join(some)})")
    return values | several


def fields(names: list[str], values: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    colons = st.sampled_from([":", "=", "!="])
    return st.builds("{}{}{}".format, st.sampled_from(names), colons, one_or_several(values))


ATTRIBUTES = fields(
    ["http.route", "number", '"odd key"', "attribute.level", "nobody", "host_name", "zone"],
    TEXTS | PATTERNS | COMPARISONS,
)
LOG_TERMS = st.one_of(
    WORDS,
    ATTRIBUTES,
    fields(["service", "service.name", "service_name", "resource.zone"], TEXTS | PATTERNS),
    fields(["host.name", "zone"], st.sampled_from(["node-a", "node-x", "node*", "a*b", "*"])),
    fields(["trace", "trace_id"], st.sampled_from([TRACE, TRACE.upper(), "ffff", "*"])),
    fields(["flags", "severity_number"], EDGES | COMPARISONS | st.sampled_from(["1*", "*"])),
    fields(["severity", "level"], LEVELS | st.sampled_from(["*", "unspecified"])),
    fields(["severity", "level"], st.builds("{}{}".format, SIGNS, LEVELS)),
    fields(["severity"], st.builds("{}..{}".format, LEVELS, LEVELS)),
    fields(["time"], st.builds("{}{}".format, SIGNS, st.sampled_from(["2026-09-21T14:13:30Z"]))),
)
SPAN_TERMS = st.one_of(
    WORDS,
    ATTRIBUTES,
    fields(["kind", "status_code"], st.sampled_from(["server", "ERROR", "unset", "*"])),
    fields(["status"], st.sampled_from(["error", "OK", "500", "5*", "*"]) | COMPARISONS),
    fields(["duration_ms"], EDGES | COMPARISONS),
    fields(["duration"], DURATIONS | st.sampled_from([">5ms", "<=0.01s", ">=500us"])),
    st.builds("duration{}{}".format, SIGNS, st.sampled_from(["5", "5ms", "0.01s"])),
    fields(["http_response_status_code"], EDGES | COMPARISONS),
)


def queries(terms: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    joined = st.recursive(
        terms,
        lambda inner: st.one_of(
            st.builds("{} {}".format, inner, inner),
            st.builds("{} AND {}".format, inner, inner),
            st.builds("({} OR {})".format, inner, inner),
            st.builds("-({})".format, inner),
            st.builds("NOT ({})".format, inner),
        ),
        max_leaves=5,
    )
    return st.just("") | joined | terms.map("-{}".format)


ASKED = st.one_of(
    st.tuples(st.just("logs"), queries(LOG_TERMS)),
    st.tuples(st.just("spans"), queries(SPAN_TERMS)),
)


@given(asked=ASKED)
@settings(max_examples=250, deadline=None)
def test_the_engine_finds_what_a_loop_finds(engine: Engine, asked: tuple[str, str]) -> None:
    """Whatever the values are, and however the parts are joined and negated."""
    table, query = asked
    assert found(engine, table, query) == expected(table, query)


SIGNS_OF_ALL = st.sampled_from(
    [*'()":*-<>=.\\ \n', "AND ", " OR ", "NOT ", "a", "service:", "x:>", "é", "'", "0"]
)


@given(text=st.text(max_size=60) | st.lists(SIGNS_OF_ALL, max_size=25).map("".join))
@example(text="-" * 200 + "x")
@example(text="(" * 4000)
@settings(max_examples=400, deadline=None)
def test_any_text_is_a_tree_or_a_place(text: str) -> None:
    """What cannot be understood is named, with a place inside the text."""
    try:
        node = parse(text)
    except Malformed as error:
        assert error.end is not None
        assert 0 <= error.begin <= error.end <= len(text)
        return
    assert (node is None) == (not text.strip())
    if node is not None:
        assert 0 <= node.begin < node.end <= len(text)


@given(
    text=st.text(max_size=30) | st.lists(SIGNS_OF_ALL, max_size=12).map("".join),
    table=st.sampled_from(["logs", "spans"]),
)
@settings(max_examples=150, deadline=None)
def test_any_text_is_run_or_refused(engine: Engine, table: str, text: str) -> None:
    """No text reaches the engine as anything but what it was understood as: it never complains."""
    try:
        conditions = query_conditions(table, text)
    except Malformed as error:
        assert error.end is not None
        assert 0 <= error.begin <= error.end <= len(text)
        return
    engine.sql(f"SELECT _row FROM {table} {where(conditions)}").fetchall()


@given(value=st.text(max_size=40))
@settings(max_examples=100, deadline=None)
def test_a_quoted_value_is_that_value(engine: Engine, value: str) -> None:
    """So nothing in it ends a literal; and its opposite finds all the others."""
    node = parse(f"key:{quoted(value)}")
    assert isinstance(node, parser.FieldQuery)
    assert [test.value for test in node.tests if isinstance(test, parser.Equals)] == [value]
    assert found(engine, "logs", f'"odd key":{quoted(value)}') == [
        row["_row"] for row in LOGS if dict(row["attributes"]).get("odd key") == value
    ]


@pytest.mark.parametrize(
    ("query", "said", "place"),
    [
        ("a )", "there is no ( for this )", (2, 3)),
        ("x (a b", "this ( is not closed", (2, 6)),
        ('say "hello', 'a closing " is missing', (4, 10)),
        ("service:", "a value is missing directly after this", (0, 8)),
        ("a service:> 5", "a value is missing directly after this", (2, 11)),
        ("a - b", "write what to exclude directly after the -", (2, 3)),
        ("a AND", "a word or a field is missing", (5, 5)),
        ("OR a", "a word or a field is missing", (0, 1)),
        ("->", "there is no letter or digit", (1, 2)),
        ("ti*me", "a * may only end a word", (0, 5)),
        ("x:(a b)", "write OR between values", (5, 6)),
        ('key:a"b"', "put all of this in quotes", (4, 5)),
        ('"":x', "a name is missing", (0, 3)),
        ("number:>many", "number needs a number", (7, 12)),
        ("flags:many", "flags needs a number", (6, 10)),
        ("number:>1e999", "is too large", (7, 13)),
        ("flags:99999999999999999999", "is too large", (6, 26)),
        ("severity:bad", "severity must be one of TRACE", (9, 12)),
        ("level:W*", "level does not support *", (6, 8)),
        ("time:>yesterday", "needs a time with a zone", (5, 15)),
        ("time:>2026-11-16T10:00:00", "needs a time with a zone", (5, 25)),
        ("time:2026*", "time does not support *", (5, 10)),
        ("attributes:x", "attributes has many values", (11, 12)),
        ("x" * 5000, "at most 4096", (4096, 5000)),
        ("a:b " * 65, "at most 64", (258, 259)),
        ("-" * 40 + "a", "at most 32", (33, 34)),
        ('"' + "a " * 65 + '"', "at most 64 words", (0, 132)),
    ],
)
def test_an_error_says_where_and_what_to_do(query: str, said: str, place: tuple[int, int]) -> None:
    with pytest.raises(Malformed, match=re.escape(said)) as caught:
        query_conditions("logs", query)
    assert (caught.value.begin, caught.value.end) == place


def test_a_wrong_duration_says_what_to_write() -> None:
    with pytest.raises(Malformed, match=re.escape("duration needs a duration, such as")) as caught:
        query_conditions("spans", "duration:>5parsecs")
    assert (caught.value.begin, caught.value.end) == (9, 18)


@pytest.mark.parametrize(
    "word", ["YWJj==", "a=", "Vec<u8>", "https://x/?a=b", "std::map=x", "a !="]
)
def test_signs_that_compare_nothing_are_text(word: str) -> None:
    node = parse(f"x {word} y" if word != "a !=" else 'x "a !="')
    assert isinstance(node, parser.All)
    assert all(isinstance(each, parser.Phrase) for each in node.nodes)


WRITTEN = re.compile(r"^\| `([^`]+)` \|", re.MULTILINE)


def _documented() -> list[str]:
    """What the document shows of the language, line by line."""
    text = (ROOT / "docs" / "sql.md").read_text(encoding="utf-8")
    return WRITTEN.findall(text.partition("| matches rows |")[2].partition("Field names are")[0])


def test_what_the_document_shows_is_understood(engine: Engine) -> None:
    """By the parser and by the engine."""
    shown = _documented()
    assert len(shown) > 10
    for query in shown:
        table = "spans" if query.startswith(("duration", "status")) else "logs"
        assert found(engine, table, query) == expected(table, query)


@pytest.mark.parametrize(
    ("table", "query", "sql"),
    [
        ("logs", "service:cart", "service_name = 'cart'"),
        ("logs", "-service:cart", "service_name <> 'cart'"),
        ("logs", "service:(cart OR web)", "service_name IN ('cart', 'web')"),
        ("logs", "severity:>=warning", "severity_number >= 13"),
        ("logs", "x:a%*", r"coalesce(attributes['x'], resource_attributes['x']) LIKE 'a\%%'"),
        ("logs", "attribute.x:>1.50", "TRY_CAST(attributes['x'] AS DOUBLE) > 1.5"),
        ("logs", "host.name=a", "coalesce(attributes['host.name'], host_name) = 'a'"),
        ("logs", "service.name!=a", "service_name <> 'a'"),
        ("logs", "http://x 12:30 std::a", """matches(body, '"http://x" "12:30" "std::a"')"""),
        ("logs", 'a "b c" d*', """matches(body, 'a "b c" d*')"""),
        ("spans", "http.route:../y", "attributes['http.route'] = '../y'"),
        ("logs", "resource.a:b", "resource_attributes['a'] = 'b'"),
        ("spans", "duration_ms:>1.5", "duration_nano > 1500000"),
        ("spans", "entry:true", f"CASE WHEN {is_entry()} THEN 'true' ELSE 'false' END = 'true'"),
        ("spans", "duration:1.5s..2m", "duration_nano BETWEEN 1500000000 AND 120000000000"),
        ("spans", "duration_nano>=7", "duration_nano >= 7"),
        ("spans", "status:500..599", "http_response_status_code BETWEEN 500 AND 599"),
        ("spans", "status:error", "status_code = 'ERROR'"),
    ],
)
def test_somebody_can_read_the_sql(table: str, query: str, sql: str) -> None:
    assert query_conditions(table, query) == [sql]


@pytest.mark.parametrize(
    "query",
    ["service:nobody", "service:(nobody OR none) flags:1", "trace:ffff", "time:<2020-01-01T00:00Z"],
)
def test_pieces_are_left_out(engine: Engine, query: str) -> None:
    """As by conditions that somebody wrote with care."""
    conditions = where(query_conditions("logs", query))
    said = dict(engine.sql(f"EXPLAIN SELECT body FROM logs {conditions}").fetchall())
    assert "reads 0 of 3 pieces" in said["pieces"]
