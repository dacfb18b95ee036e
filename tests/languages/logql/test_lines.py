# ruff: noqa: E501 # a case is a line
"""Queries of lines find what plain Python finds among the same records, and show it as asked."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator

import pytest

from frazil.languages import LineSpan, ReadRows, find_lines, parse_selection
from tests.languages.logql.rows import BEGIN_NS, COUNT, RECORDS, SECOND_NS, Known, reading

ALL = LineSpan(BEGIN_NS, BEGIN_NS + COUNT * SECOND_NS)
Test = Callable[[Known], bool]
Shown = Callable[[Known], str]


@pytest.fixture(scope="module")
def read() -> Iterator[ReadRows]:
    with reading() as opened:
        yield opened


def cart(k: Known) -> bool:
    return k.service == "cart"


def web(k: Known) -> bool:
    return k.service == "web"


def gate(k: Known) -> bool:
    return k.service == "gate"


def odd(k: Known) -> bool:
    return k.service == "odd"


CHOSEN: list[tuple[str, Test]] = [
    # Selectors
    ('{service_name="cart"}', cart),
    ('{service_name!="cart"}', lambda k: not cart(k)),
    ('{service_name=~"cart|web"}', lambda k: cart(k) or web(k)),
    ('{service_name=~"c.*"}', cart),
    ('{service_name=~"ar"}', lambda k: False),
    ('{service_name!~"cart|web"}', lambda k: gate(k) or odd(k)),
    ('{service_name!~".*a.*"}', lambda k: "a" not in k.service),
    ('{service_name=~".+"}', lambda k: True),
    ('{service_name=~".*"}', lambda k: True),
    ('{service_name=~""}', lambda k: False),
    ('{service_name=~"(?i)CART"}', cart),
    ('{"service.name"="cart"}', cart),
    ('{service_name="cart", k8s_pod_name="cart-1"}', lambda k: k.pod == "cart-1"),
    ('{"k8s.pod.name"="cart-1"}', lambda k: k.pod == "cart-1"),
    ('{cloud_region="eu"}', lambda k: k.region == "eu"),
    ('{"cloud.region"="us", service_name="web"}', lambda k: web(k) and k.region == "us"),
    ('{cloud_region!="eu"}', lambda k: k.region == "us"),
    ('{cloud_region=~"e."}', lambda k: k.region == "eu"),
    ('{http_route="/r1"}', lambda k: k.route == "/r1"),
    ('{http_route=~"/r[12]"}', lambda k: k.route in ("/r1", "/r2")),
    ('{build="7"}', lambda k: True),
    ('{missing=""}', lambda k: True),
    ('{missing!=""}', lambda k: False),
    ('{missing="x"}', lambda k: False),
    ('{missing!="x"}', lambda k: True),
    ('{missing=~"x|"}', lambda k: True),
    ('{missing!~"x|"}', lambda k: False),
    ('{level="error"}', lambda k: k.level == "error"),
    ('{severity="error"}', lambda k: k.level == "error"),
    ('{detected_level=~"error|fatal"}', lambda k: k.level in ("error", "fatal")),
    ('{detected_level!="info"}', lambda k: k.level != "info"),
    ('{detected_level="unknown"}', lambda k: k.level == "unknown"),
    ('{detected_level="loud"}', lambda k: False),
    ('{severity_text="WARN"}', lambda k: k.level == "warn"),
    ('{severity_number="13"}', lambda k: k.level == "warn"),
    ('{trace_id=""}', lambda k: not k.trace),
    ("{}", lambda k: True),
    ("{service_name=`cart`,}", cart),
    # Line filters
    ('{} |= "plain"', lambda k: "plain" in k.line),
    ('{} != "plain"', lambda k: "plain" not in k.line),
    ('{} |= ""', lambda k: True),
    ('{} != ""', lambda k: False),
    ('{} |= "text 1"', lambda k: "text 1" in k.line),
    ('{} |= "PLAIN"', lambda k: False),
    ('{} |= "plain" |= "7"', lambda k: "plain" in k.line and "7" in k.line),
    ('{} |= "plain" != "7"', lambda k: "plain" in k.line and "7" not in k.line),
    ('{} |= "plain" or "GET /x/2"', lambda k: "plain" in k.line or "GET /x/2" in k.line),
    ('{} != "plain" or "GET"', lambda k: "plain" not in k.line and "GET" not in k.line),
    ('{} |= `"status": 200`', lambda k: '"status": 200' in k.line),
    ('{} |~ "text [13]$"', lambda k: re.search("text [13]$", k.line) is not None),
    ('{} |~ "(?i)PLAIN"', lambda k: "plain" in k.line),
    ('{} !~ "(?i)PLAIN|get"', lambda k: re.search("plain|get", k.line, re.I) is None),
    (r'{} |~ "\\d{2}ms"', lambda k: re.search(r"\d{2}ms", k.line) is not None),
    (r"{} |~ `\d{2}ms` or `text \d$`", lambda k: re.search(r"\d{2}ms|text \d$", k.line) is not None),
    ('{} |~ "it\'s"', lambda k: False),
    ('{} |> "<_>text 1<_>"', lambda k: re.fullmatch(r".*text 1.*", k.line) is not None),
    ('{} |> "plain<_>7"', lambda k: re.fullmatch("plain.*7", k.line) is not None),
    ('{} !> "plain<_>"', lambda k: not k.line.startswith("plain")),
    ('{} |= ip("10.0.1.0/24")', lambda k: gate(k) and k.n % 3 == 1),
    ('{} |= ip("10.0.2.2")', lambda k: gate(k) and k.address == "10.0.2.2"),
    ('{} |= ip("10.0.0.0-10.0.1.255")', lambda k: gate(k) and k.n % 3 < 2),
    ('{service_name="gate"} != ip("10.0.1.0/24")', lambda k: gate(k) and k.n % 3 != 1),
    ('({service_name="odd"}) |= "7"', lambda k: odd(k) and "7" in k.line),
    # Label filters without a parser
    ('{} | http_route="/r1"', lambda k: k.route == "/r1"),
    ('{} | http_route!="/r1"', lambda k: k.route != "/r1"),
    ('{} | http_route=~"/r[01]"', lambda k: k.route in ("/r0", "/r1")),
    ('{} | http_route!~"/r[01]"', lambda k: k.route == "/r2"),
    ("{} | retry_count > 4", lambda k: k.retries > 4),
    ("{} | retry_count >= 4", lambda k: k.retries >= 4),
    ("{} | retry_count < 2", lambda k: k.retries < 2),
    ("{} | retry_count <= 2", lambda k: k.retries <= 2),
    ("{} | retry_count == 3", lambda k: k.retries == 3),
    ("{} | retry_count = 3", lambda k: k.retries == 3),
    ("{} | retry_count != 3", lambda k: k.retries != 3),
    ("{} | retry_count > -1", lambda k: True),
    ("{} | missing > 1", lambda k: False),
    ("{} | retry_count > 1 and retry_count < 4", lambda k: 1 < k.retries < 4),
    ("{} | retry_count > 1, retry_count < 4", lambda k: 1 < k.retries < 4),
    ("{} | retry_count > 1 retry_count < 4", lambda k: 1 < k.retries < 4),
    (
        '{} | retry_count > 5 or http_route="/r0" and cloud_region="us"',
        lambda k: k.retries > 5 or (k.route == "/r0" and k.region == "us"),
    ),
    (
        '{} | (retry_count > 5 or http_route="/r0") and cloud_region="us"',
        lambda k: (k.retries > 5 or k.route == "/r0") and k.region == "us",
    ),
    ('{} | level="error"', lambda k: k.level == "error"),
    ('{} | detected_level=~"warn|error"', lambda k: k.level in ("warn", "error")),
    ("{} | severity_number >= 17", lambda k: k.level in ("error", "fatal")),
    (f'{{}} | trace_id="{6:032x}"', lambda k: k.n == 5),
    ('{} | trace_id!=""', lambda k: k.n % 5 == 0),
    ('{} | __error__=""', lambda k: True),
    ('{} | __error__!=""', lambda k: False),
    # JSON
    ('{service_name="cart"} | json | status="200"', lambda k: cart(k) and k.status == 200),
    ('{service_name="cart"} | json | status >= 300', lambda k: cart(k) and k.status >= 300),
    ('{service_name="cart"} | json | user_name="u1"', lambda k: cart(k) and k.user == "u1"),
    ('{service_name="cart"} | json | user_id > 30', lambda k: cart(k) and k.n > 30),
    ('{service_name="cart"} | json | ok="true"', lambda k: cart(k) and k.n % 8 == 0),
    ('{service_name="cart"} | json | level="loud"', cart),
    ('{service_name="cart"} | json | tags="a"', lambda k: False),
    ('{service_name="cart"} | json | status="200" | ms > 100', lambda k: cart(k) and k.status == 200 and k.ms > 100),
    ('{} | json | __error__="JSONParserErr"', lambda k: not cart(k) and k.n != 59),
    ('{} | json | __error__=""', lambda k: cart(k) or k.n == 59),
    ('{} | json | status="200"', lambda k: cart(k) and k.status == 200),
    ('{} | json code="status", who="user.name" | code="400" | who=~"u."', lambda k: cart(k) and k.status == 400),
    ('{service_name="cart"} | json first="tags[0]" | first="a"', cart),
    ('{service_name="cart"} | json last="tags[1]" | last="t4"', lambda k: k.n == 4),
    ('{service_name="cart"} | json all="tags" | all="[\\"a\\",\\"t4\\"]"', lambda k: k.n == 4),
    ('{service_name="cart"} | json who=`["user"]["name"]` | who="u2"', lambda k: cart(k) and k.user == "u2"),
    ('{service_name="cart"} | json none="nope.x" | none=""', cart),
    (f'{{}} | logfmt | json | drop __error__ | trace_id="{6:032x}"', lambda k: k.n == 5),
    ('{} | json | drop __error__, __error_details__ | __error__=""', lambda k: True),
    ('{service_name="cart"} | json |= "t4"', lambda k: cart(k) and '"t4' in k.line),
    ('{service_name="cart"} | json | status="200" or user_name="u1"', lambda k: cart(k) and (k.status == 200 or k.user == "u1")),
    # logfmt
    ('{service_name="web"} | logfmt | method="GET"', web),
    ('{service_name="web"} | logfmt | path="/p 5"', lambda k: k.n == 5),
    ('{service_name="web"} | logfmt | dur > 20ms', lambda k: web(k) and k.n > 20),
    ('{service_name="web"} | logfmt | dur <= 0.02s', lambda k: web(k) and k.n <= 20),
    ('{service_name="web"} | logfmt | size > 20KB', lambda k: web(k) and k.n > 20),
    ('{service_name="web"} | logfmt | size >= 21000B', lambda k: web(k) and k.n >= 21),
    ('{service_name="web"} | logfmt | size > 20KiB', lambda k: web(k) and k.n * 1000 > 20480),
    ('{service_name="web"} | logfmt | service_name="web"', web),
    ('{service_name="web"} | logfmt | service_name_extracted="w"', web),
    ('{service_name="web"} | logfmt m="method" | m="GET" | method=""', web),
    ('{service_name="web"} | logfmt method, dur | method="GET" | at=""', web),
    ('{service_name="odd"} | logfmt | __error__=""', odd),
    ('{service_name="odd"} | logfmt --strict | __error__="LogfmtParserErr"', lambda k: k.n == 59),
    ('{service_name="web"} | logfmt | dur > 1', web),
    ('{service_name="web"} | logfmt | dur > 1 | __error__="LabelFilterErr"', web),
    # pattern and regexp
    ('{service_name="gate"} | pattern "<ip> - <method> <path> <status> <ms>" | status="200"', lambda k: gate(k) and k.status == 200),
    ('{service_name="gate"} | pattern "<ip> <_> <_> <path> <_>" | path="/x/2"', lambda k: k.n == 2),
    ('{service_name="gate"} | pattern "<ip> -" | ip=ip("10.0.1.0/24")', lambda k: gate(k) and k.n % 3 == 1),
    ('{service_name="gate"} | pattern "<ip> -" | ip!=ip("10.0.1.0/24")', lambda k: gate(k) and k.n % 3 != 1),
    ('{service_name="gate"} | pattern "nothing <x>" | x=""', gate),
    (r'{service_name="gate"} | regexp "/x/(?P<id>\\d+) (?P<status>\\d+)" | id > 30 | status=~"4.."', lambda k: gate(k) and k.n > 30 and k.status == 400),
    ('{service_name="gate"} | regexp `^(?P<a>\\d+)\\.` | a="10"', gate),
    ('{service_name="odd"} | unpack | pod="p-59"', lambda k: k.n == 59),
    ('{service_name="odd"} | unpack | __error__="JSONParserErr"', lambda k: odd(k) and k.n != 59),
    ('{service_name="odd"} | unpack |= "packed line"', lambda k: k.n == 59),
    ('{service_name="odd"} | decolorize |= "plain text 55"', lambda k: k.n == 55),
    # Formats and labels
    ('{} | label_format route=http_route | route="/r1"', lambda k: k.route == "/r1"),
    ('{} | label_format route=http_route | http_route=""', lambda k: True),
    ('{} | label_format x=`{{.http_route}}!` | x="/r1!"', lambda k: k.route == "/r1"),
    ('{} | label_format x=`{{.cloud_region}}`, y=`{{.retry_count}}` | x="eu" | y > 4', lambda k: k.region == "eu" and k.retries > 4),
    ('{} | line_format "{{.http_route}}" |= "/r1"', lambda k: k.route == "/r1"),
    ('{} | line_format "{{.http_route}}" != "/r1" |= "/r"', lambda k: k.route != "/r1"),
    ('{service_name="cart"} | json | line_format "{{.user_name}}" |~ "^u[12]$"', lambda k: cart(k) and k.user in ("u1", "u2")),
    ('{} | drop http_route | http_route=""', lambda k: True),
    ('{} | drop http_route="/r1" | http_route=""', lambda k: k.route == "/r1"),
    ('{} | drop http_route=~"/r[12]" | http_route!=""', lambda k: k.route == "/r0"),
    ('{} | keep http_route | cloud_region="" | http_route!=""', lambda k: True),
    ('{} | keep http_route="/r1" | http_route=""', lambda k: k.route != "/r1"),
    ('{} | drop service_name | service_name=""', lambda k: True),
    # What Grafana makes of a trace
    (
        f'{{service_name="gate"}} | label_format log_line_contains_trace_id=`{{{{ contains "x/2" __line__ }}}}`'
        f' | log_line_contains_trace_id="true" or trace_id="{11:032x}"',
        lambda k: gate(k) and ("x/2" in k.line or k.n == 10),
    ),
    ('{} | label_format has=`{{ contains "GET" __line__ }}` | has="false"', lambda k: "GET" not in k.line),
    ("{} # everything", lambda k: True),
]  # fmt: skip


@pytest.mark.parametrize(("query", "is_meant"), CHOSEN, ids=[query for query, _ in CHOSEN])
def test_lines_are_chosen(read: ReadRows, query: str, is_meant: Test) -> None:
    """Exactly the lines that are meant, the newest first."""
    found = find_lines(read, parse_selection(query), ALL, limit=COUNT, is_newest=True)
    numbers = [(line.time_ns - BEGIN_NS) // SECOND_NS for line in found.lines]
    assert numbers == [k.n for k in reversed(RECORDS) if is_meant(k)]


SHOWN: list[tuple[str, Test, Shown]] = [
    ('{service_name="odd"} | decolorize', odd, lambda k: k.line.replace("\x1b[31m", "").replace("\x1b[0m", "")),
    ('{} | line_format "{{.service_name}}"', lambda k: True, lambda k: k.service),
    ('{} | line_format "{{.http_route | ToUpper}} {{.nope}}"', lambda k: True, lambda k: k.route.upper() + " "),
    ('{} | line_format `{{ if eq .http_route "/r1" }}one{{ else }}{{ .k8s_pod_name }}{{ end }}`', lambda k: True, lambda k: "one" if k.route == "/r1" else k.pod),
    ('{} | line_format "{{ __line__ }}!"', lambda k: True, lambda k: k.line + "!"),
    ('{} | line_format `{{ __timestamp__ | unixEpochNanos }}`', lambda k: True, lambda k: str(BEGIN_NS + k.n * SECOND_NS)),
    ('{} | line_format `{{ __timestamp__ | date "15:04:05" }}`', lambda k: k.n < 40, lambda k: f"14:13:{20 + k.n}"),
    ('{service_name="cart"} | json | line_format "{{.status}} {{.user_name}} {{.ms}}"', cart, lambda k: f"{k.status} {k.user} {k.ms}"),
    ('{service_name="cart"} | json | line_format `{{ div .ms 7 }} {{ mul .ms 2 }}`', cart, lambda k: f"{k.ms // 7} {k.ms * 2}"),
    ('{service_name="web"} | logfmt | line_format `{{ .path | replace "/p " "" | trunc 1 }}`', web, lambda k: str(k.n)[0]),
    ('{service_name="web"} | logfmt | line_format `{{ regexReplaceAll "/p (\\\\d+)" .path "<${1}>" }}`', web, lambda k: f"<{k.n}>"),
    ('{service_name="gate"} | pattern "<ip> - <rest>" | line_format "{{.rest}}"', gate, lambda k: k.line.partition(" - ")[2]),
    ('{service_name="odd"} |= "packed" | unpack', lambda k: k.n == 59, lambda k: "packed line"),
    ('{service_name="cart"} | json | label_format status=`{{ .status }}x` | line_format "{{.status}}"', cart, lambda k: f"{k.status}x"),
    ('{service_name="cart"} | json | label_format who=user_name | line_format "{{.who}}{{.user_name}}"', cart, lambda k: k.user),
    ('{service_name="cart"} | line_format `{"user": "{{ .http_route }}"}` | json | line_format "{{.user}}"', cart, lambda k: k.route),
    ('{} | line_format `{{ default "none" .trace_id }}`', lambda k: True, lambda k: k.trace or "none"),
]  # fmt: skip


@pytest.mark.parametrize(("query", "is_meant", "shown"), SHOWN, ids=[case[0] for case in SHOWN])
def test_lines_are_shown(read: ReadRows, query: str, is_meant: Test, shown: Shown) -> None:
    """Lines are written as their templates say; the oldest come first if asked."""
    found = find_lines(read, parse_selection(query), ALL, limit=COUNT, is_newest=False)
    lines = {(line.time_ns - BEGIN_NS) // SECOND_NS: line.line for line in found.lines}
    wanted = {k.n: shown(k) for k in RECORDS if is_meant(k)}
    assert {n: lines[n] for n in wanted} == wanted
    assert list(lines) == sorted(lines)


def test_labels_are_told_apart(read: ReadRows) -> None:
    """Labels of the stream, of the record, and of the line."""
    found = find_lines(
        read, parse_selection('{service_name="cart"} | json'), ALL, limit=1, is_newest=False
    )
    line = found.lines[0]
    assert line.stream == {"service_name": "cart", "k8s_pod_name": "cart-0"}
    assert line.metadata == {
        "build": "7",
        "cloud_region": "eu",
        "detected_level": "unknown",
        "http_route": "/r0",
        "retry_count": "0",
        "severity_number": "0",
        "severity_text": "UNKNOWN",
        "trace_id": f"{1:032x}",
    }
    body = json.loads(RECORDS[0].line)
    assert line.parsed == {
        "status": str(body["status"]),
        "ms": "0",
        "user_id": "0",
        "user_name": "u0",
        "ok": "true",
        "level": "loud",
    }


def test_a_limit_is_kept_over_pages(read: ReadRows, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages continue where the one before ended, in both directions."""
    monkeypatch.setattr("frazil.languages.logql.records.PAGE_ROWS", 4)
    monkeypatch.setattr("frazil.languages.logql.records.PAGE_GROWTH", 1)
    selection = parse_selection('{} | json | status="200"')
    wanted = [k.n for k in RECORDS if cart(k) and k.status == 200]
    for is_newest, order in ((True, wanted[::-1]), (False, wanted)):
        found = find_lines(read, selection, ALL, limit=3, is_newest=is_newest)
        assert [(line.time_ns - BEGIN_NS) // SECOND_NS for line in found.lines] == order[:3]


def test_time_is_half_open(read: ReadRows) -> None:
    """A line at `start` is found, one at `end` is not."""
    span = LineSpan(BEGIN_NS + 3 * SECOND_NS, BEGIN_NS + 5 * SECOND_NS)
    found = find_lines(read, parse_selection("{}"), span, limit=COUNT, is_newest=False)
    assert [(line.time_ns - BEGIN_NS) // SECOND_NS for line in found.lines] == [3, 4]
