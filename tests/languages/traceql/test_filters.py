"""Conditions on spans: each against what Python says of each span."""

from __future__ import annotations

import random
import re
from collections.abc import Callable

import pytest

from frazil.query.search.filters import Ask
from tests.languages.traceql.spans import (
    MS,
    SPANS,
    Happening,
    OneSpan,
    ask,
    children,
    find,
    ids,
    root_of,
    spansets,
    trace_nanos,
)

__all__ = ["ask"]

Says = Callable[[OneSpan], object]
SEED = 20261119
COMBINATIONS = 40


def number(value: object) -> float:
    """A value as a number; NaN, which equals and exceeds nothing, if it is none."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if is_number or (isinstance(value, str) and re.fullmatch(r"-?\d+(\.\d+)?", value)):
        return float(value)  # type: ignore[arg-type]  # a number or its digits
    return float("nan")


def num(span: OneSpan, key: str) -> float:
    """An attribute of a span as a number."""
    return number(span.tags.get(key))


def differs(left: float, right: float) -> bool:
    """Whether two numbers differ; NaN is none."""
    return left == left and left != right


def any_event(span: OneSpan, says: Callable[[Happening], object]) -> bool:
    return any(map(says, span.events))


def attempts(span: OneSpan) -> list[float]:
    return [number(event.tags.get("attempt")) for event in span.events]


CASES: list[tuple[str, Says]] = [
    # Everything and nothing.
    ("", lambda s: True),
    ("true", lambda s: True),
    ("false", lambda s: False),
    ("true && false", lambda s: False),
    ("true || false", lambda s: True),
    # Names.
    ('name = "load"', lambda s: s.name == "load"),
    ('span:name = "load"', lambda s: s.name == "load"),
    ('"load" = name', lambda s: s.name == "load"),
    ('name != "load"', lambda s: s.name != "load"),
    ('name =~ "l.*"', lambda s: s.name.startswith("l")),
    ('name =~ "oa"', lambda s: False),
    ('name =~ "load|select"', lambda s: s.name in ("load", "select")),
    ('name !~ "load|select"', lambda s: s.name not in ("load", "select")),
    ('name =~ "(?i)LOAD"', lambda s: s.name == "load"),
    ("name = `GET /`", lambda s: s.name == "GET /"),
    ('name > "render"', lambda s: s.name > "render"),
    ('name <= "call cart"', lambda s: s.name <= "call cart"),
    # Durations.
    ("duration > 40ms", lambda s: s.nanos > 40 * MS),
    ("duration >= 40ms", lambda s: s.nanos >= 40 * MS),
    ("duration < 5.5ms", lambda s: s.nanos < 5.5 * MS),
    ("duration <= 5.5ms", lambda s: s.nanos <= 5.5 * MS),
    ("duration = 250us", lambda s: s.nanos == 250_000),
    ("duration = 250µs", lambda s: s.nanos == 250_000),
    ("duration != 100ms", lambda s: s.nanos != 100 * MS),
    ("span:duration > 0.1s", lambda s: s.nanos > 100 * MS),
    ("100ms <= duration", lambda s: s.nanos >= 100 * MS),
    ("duration > 50000000", lambda s: s.nanos > 50 * MS),
    ("duration > 1h30m", lambda s: False),
    ("duration < 1d", lambda s: True),
    ("duration * 2 > 100ms", lambda s: s.nanos * 2 > 100 * MS),
    ("duration + 10ms > 60ms", lambda s: s.nanos + 10 * MS > 60 * MS),
    ("duration - 10ms < 0", lambda s: s.nanos < 10 * MS),
    ("duration / 2 >= 50ms", lambda s: s.nanos >= 100 * MS),
    ("-duration < -50ms", lambda s: s.nanos > 50 * MS),
    # Status and kind.
    ("status = error", lambda s: s.status == "ERROR"),
    ("status != error", lambda s: s.status != "ERROR"),
    ("status = ok", lambda s: s.status == "OK"),
    ("status = unset", lambda s: s.status == "UNSET"),
    ("span:status = error", lambda s: s.status == "ERROR"),
    ("error = status", lambda s: s.status == "ERROR"),
    ("kind = server", lambda s: s.kind == "SERVER"),
    ("kind != server", lambda s: s.kind != "SERVER"),
    ("span:kind = consumer", lambda s: s.kind == "CONSUMER"),
    ("kind = producer", lambda s: s.kind == "PRODUCER"),
    ("kind = internal", lambda s: s.kind == "INTERNAL"),
    ("kind = client", lambda s: s.kind == "CLIENT"),
    ("kind = unspecified", lambda s: s.kind == "UNSPECIFIED"),
    ('statusMessage = "it\'s gone"', lambda s: s.message == "it's gone"),
    ('statusMessage =~ "re.+"', lambda s: (s.message or "").startswith("re")),
    ('span:statusMessage = ""', lambda s: not s.message),
    ('statusMessage != ""', lambda s: bool(s.message)),
    # Ids.
    ('span:id = "0000000000000003"', lambda s: s.id == 3),
    ('span:parentID = "0000000000000001"', lambda s: s.parent == 1),
    ('span:parentID = ""', lambda s: s.parent is None),
    ('trace:id = "00000000000000000000000000000003"', lambda s: s.trace == 3),
    ('trace:id =~ "0+2"', lambda s: s.trace == 2),
    # Attributes of the span.
    ('span.user = "ann"', lambda s: s.tags.get("user") == "ann"),
    ('span.user != "ann"', lambda s: s.tags.get("user", "ann") != "ann"),
    ('!(span.user = "ann")', lambda s: s.tags.get("user") != "ann"),
    ("span.user != nil", lambda s: "user" in s.tags),
    ("span.user = nil", lambda s: "user" not in s.tags),
    ("nil != span.user", lambda s: "user" in s.tags),
    ('span.user =~ "a.*|x"', lambda s: str(s.tags.get("user", "")).startswith("a")),
    ('span.user !~ "a.*"', lambda s: str(s.tags.get("user", "a"))[0] != "a"),
    ('span.user > "ann"', lambda s: str(s.tags.get("user", "")) > "ann"),
    ("span.http.status = 200", lambda s: s.tags.get("http.status") == 200),
    ("span.http.status != 200", lambda s: differs(num(s, "http.status"), 200)),
    ("span.http.status >= 400", lambda s: num(s, "http.status") >= 400),
    ("span.http.status < 400", lambda s: num(s, "http.status") < 400),
    ("500 = span.http.status", lambda s: s.tags.get("http.status") == 500),
    ("400 < span.http.status", lambda s: num(s, "http.status") > 400),
    ('span.http.status =~ "4.."', lambda s: str(s.tags.get("http.status", "")).startswith("4")),
    ("span.ratio = 0.5", lambda s: s.tags.get("ratio") == 0.5),
    ("span.ratio > .4", lambda s: num(s, "ratio") > 0.4),
    ("span.ratio < 0", lambda s: num(s, "ratio") < 0),
    ("span.ratio = -2", lambda s: s.tags.get("ratio") == -2),
    ("span.ratio > 1e0", lambda s: num(s, "ratio") > 1),
    ("span.cached = true", lambda s: s.tags.get("cached") is True),
    ("span.cached = false", lambda s: s.tags.get("cached") is False),
    ("span.cached != true", lambda s: s.tags.get("cached") is False),
    ("span.cached != false", lambda s: s.tags.get("cached") is True),
    ("span.cached", lambda s: s.tags.get("cached") is True),
    ("!span.cached", lambda s: s.tags.get("cached") is not True),
    ("true = span.cached", lambda s: s.tags.get("cached") is True),
    ('span."weird key" = "yes"', lambda s: s.tags.get("weird key") == "yes"),
    ('span.text-code = "7"', lambda s: s.tags.get("text-code") == "7"),
    ("span.text-code > 6", lambda s: num(s, "text-code") > 6),
    (r'span.note = "a \"b\"\nc"', lambda s: s.tags.get("note") == 'a "b"\nc'),
    ('span.note =~ "a.*c"', lambda s: "note" in s.tags),
    ("span.user > 3", lambda s: False),
    ("span.nothing = 1", lambda s: False),
    ("span.nothing != 1", lambda s: False),
    # Arithmetic on attributes.
    ("span.retries + 1 = 3", lambda s: s.tags.get("retries") == 2),
    ("span.retries - 1 > 2", lambda s: num(s, "retries") > 3),
    ("span.retries * span.ratio = 1", lambda s: s.id == 2),
    ("span.rows / 5 > 2.3", lambda s: num(s, "rows") / 5 > 2.3),
    ("span.rows % 5 = 2", lambda s: s.tags.get("rows") == 12),
    ("span.retries ^ 2 = 25", lambda s: s.tags.get("retries") == 5),
    ("(span.retries + 1) * 2 = 6", lambda s: s.tags.get("retries") == 2),
    ("span.retries + 1 * 2 = 4", lambda s: s.tags.get("retries") == 2),
    ("span.rows / 0 > 1", lambda s: False),
    ("-span.retries = -2", lambda s: s.tags.get("retries") == 2),
    ("2 ^ 3 ^ 0 = 2", lambda s: True),
    ("1 + 1 = 2", lambda s: True),
    # Two attributes.
    ("span.retries > span.ratio", lambda s: num(s, "retries") > num(s, "ratio")),
    ("span.peer = resource.service.name", lambda s: s.tags.get("peer") == s.service),
    (
        "span.http.status != resource.replica",
        lambda s: "http.status" in s.tags and "replica" in s.resource,
    ),
    ("name = span.peer", lambda s: s.name == s.tags.get("peer")),
    # Attributes of the resource, and of either.
    ('resource.service.name = "web"', lambda s: s.service == "web"),
    ('resource.service.name != "web"', lambda s: s.service != "web"),
    ('resource.service.name =~ "c.*"', lambda s: s.service[0] == "c"),
    ('resource.host.name = "node-b"', lambda s: s.resource.get("host.name") == "node-b"),
    ("resource.replica = 2", lambda s: s.resource.get("replica") == 2),
    ("resource.replica > 1", lambda s: number(s.resource.get("replica")) > 1),
    ("resource.host.name = nil", lambda s: "host.name" not in s.resource),
    ("resource.k8s.pod != nil", lambda s: "k8s.pod" in s.resource),
    ('.service.name = "cart"', lambda s: s.service == "cart"),
    ('.host.name = "node-a"', lambda s: s.any("host.name") == "node-a"),
    (".replica = 9", lambda s: s.any("replica") == 9),
    (".replica = 2", lambda s: s.any("replica") == 2),
    (".replica >= 2", lambda s: number(s.any("replica")) >= 2),
    (".replica != nil", lambda s: s.any("replica") is not None),
    ('.user = "bob"', lambda s: s.any("user") == "bob"),
    ('.http.route = "/"', lambda s: s.any("http.route") == "/"),
    ('span.http.route = "/"', lambda s: s.tags.get("http.route") == "/"),
    # Instrumentation.
    ('instrumentation:name = "http"', lambda s: s.scope == "http"),
    ('instrumentation:version = "1.2"', lambda s: s.version == "1.2"),
    ('instrumentation:name = ""', lambda s: not s.scope),
    ('instrumentation.build = "a7"', lambda s: s.scope_tags.get("build") == "a7"),
    ("instrumentation.build = nil", lambda s: "build" not in s.scope_tags),
    # Events.
    ('event:name = "exception"', lambda s: any(e.name == "exception" for e in s.events)),
    ('event:name != "exception"', lambda s: any(e.name != "exception" for e in s.events)),
    ("event:name != nil", lambda s: bool(s.events)),
    ("event:name = nil", lambda s: not s.events),
    (
        'event.exception.type = "IOError"',
        lambda s: any_event(s, lambda e: e.tags.get("exception.type") == "IOError"),
    ),
    (
        'event.exception.message =~ "disk.*"',
        lambda s: any_event(s, lambda e: "exception.message" in e.tags),
    ),
    ("event.attempt = 1", lambda s: any(e.tags.get("attempt") == 1 for e in s.events)),
    ("event.attempt > 1", lambda s: any(number(e.tags.get("attempt")) > 1 for e in s.events)),
    ("event.exception.type = nil", lambda s: all("exception.type" not in e.tags for e in s.events)),
    ("event.exception.type != nil", lambda s: any("exception.type" in e.tags for e in s.events)),
    ("event:timeSinceStart > 2ms", lambda s: any(e.at_ms > 2 for e in s.events)),
    ("event:timeSinceStart <= 1ms", lambda s: any(e.at_ms <= 1 for e in s.events)),
    ("!(event.attempt = 1)", lambda s: all(e.tags.get("attempt") != 1 for e in s.events)),
    ("event.attempt = 1 && event.attempt = 2", lambda s: {1, 2} <= set(attempts(s))),
    (
        "event.attempt < span.retries",
        lambda s: any(each < num(s, "retries") for each in attempts(s)),
    ),
    # Links.
    ("link:traceID != nil", lambda s: bool(s.links)),
    ('link:spanID = "0000000000000004"', lambda s: any(each.span == 4 for each in s.links)),
    ('link:traceID =~ "0+1"', lambda s: any(each.trace == 1 for each in s.links)),
    ('link.queue = "mails"', lambda s: any(each.tags.get("queue") == "mails" for each in s.links)),
    ("link.queue = nil", lambda s: not s.links),
    # The trace.
    ("nestedSetParent < 0", lambda s: s.parent is None),
    ("nestedSetParent = -1", lambda s: s.parent is None),
    ("nestedSetParent != -1", lambda s: s.parent is not None),
    ("nestedSetParent > 0", lambda s: s.parent is not None),
    ("0 > nestedSetParent", lambda s: s.parent is None),
    ("nestedSetParent >= -5", lambda s: True),
    ("nestedSetParent < -5", lambda s: False),
    ('rootName = "GET /"', lambda s: root_of(s).name == "GET /"),
    ('trace:rootName =~ "send.*"', lambda s: root_of(s).name == "send mail"),
    ('rootServiceName = "web"', lambda s: root_of(s).service == "web"),
    ('trace:rootService != "web"', lambda s: root_of(s).service != "web"),
    ("traceDuration > 50ms", lambda s: trace_nanos(s) > 50 * MS),
    ("trace:duration = 250us", lambda s: trace_nanos(s) == 250_000),
    ("duration = traceDuration", lambda s: s.nanos == trace_nanos(s)),
    ("span:childCount = 2", lambda s: len(children(s)) == 2),
    ("childCount = 0", lambda s: not children(s)),
    ("span:childCount > 0 && kind = server", lambda s: bool(children(s)) and s.kind == "SERVER"),
    # Logic.
    ('status = error && resource.service.name = "cart"', lambda s: s.id == 3),
    ("status = error || kind = consumer", lambda s: s.status == "ERROR" or s.kind == "CONSUMER"),
    (
        "status = ok || status = error && kind = server",
        lambda s: s.status == "OK" or (s.status == "ERROR" and s.kind == "SERVER"),
    ),
    (
        "(status = ok || status = error) && kind = server",
        lambda s: s.status in ("OK", "ERROR") and s.kind == "SERVER",
    ),
    (
        "!(status = error || kind = server)",
        lambda s: s.status != "ERROR" and s.kind != "SERVER",
    ),
    ("!!(status = error)", lambda s: s.status == "ERROR"),
    ("status = error && true", lambda s: s.status == "ERROR"),
    ('name = "load" // a comment\n && kind = server', lambda s: s.name == "load"),
    ('name = /* why */ "load"', lambda s: s.name == "load"),
]


def expected(says: Says) -> list[int]:
    return sorted(span.id for span in SPANS if says(span))


@pytest.mark.parametrize(("condition", "says"), CASES, ids=[condition for condition, _ in CASES])
def test_a_condition_finds_its_spans(ask: Ask, condition: str, says: Says) -> None:
    """SQL and Python agree about every span."""
    found = find(ask, f"{{ {condition} }}")
    assert ids(found) == expected(says)
    assert len(spansets(found)) == len({span.trace for span in SPANS if says(span)})


def test_cases_tell_spans_apart() -> None:
    """Most conditions hold for some spans and not for others."""
    telling = [says for _, says in CASES if 0 < len(expected(says)) < len(SPANS)]
    assert len(telling) > 0.85 * len(CASES)


def test_combined_conditions(ask: Ask) -> None:
    """Any two conditions, joined and negated, agree with Python as well."""
    choose = random.Random(SEED)
    cases = [case for case in CASES if case[0] and "//" not in case[0]]
    for _ in range(COMBINATIONS):
        (left, of_left), (right, of_right) = choose.sample(cases, 2)
        sign = choose.choice(("&&", "||"))
        negated = choose.choice(("", "!"))
        query = f"{{ {negated}({left}) {sign} ({right}) }}"
        wanted = []
        for span in SPANS:
            first, second = bool(of_left(span)) != bool(negated), bool(of_right(span))
            if (first and second) if sign == "&&" else (first or second):
                wanted.append(span.id)
        assert ids(find(ask, query)) == wanted, query
