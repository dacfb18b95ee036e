# ruff: noqa: E501 # a case is a line
"""LogQL is read with its position in errors, and written in one form."""

from __future__ import annotations

import random
import re

import pytest

from frazil.errors import Malformed
from frazil.languages import LogSelection, logql_text, parse_logql
from frazil.languages.logql.pipeline import LogLine, compile_stages, passes
from tests.live.loki.queries import LINES, NUMBERS

WRONG = [
    ("", "line 1, col 1.*selector"),
    ('{a="b"', "col 7.*expected ,"),
    ("{a}", "col 3.*unexpected }.*= != =~ !~"),
    ('{a="b}', "no closing quote"),
    ("{a=b}", "col 4.*a text in quotes"),
    ('{a="b"} |', "col 10"),
    ('{a="b"} | nonsense', "a stage such as json"),
    ('{a="b"} | distinct x', "distinct is not supported"),
    ('{a="b"} |~ "("', "the regular expression '\\('"),
    ('{a=~"["}', "regular expression"),
    ('{a="b"} | regexp "x"', "no named group"),
    ('{a="b"} | pattern "x"', "no named capture"),
    ('{a="b"} | pattern "<a><b>"', "put a text between"),
    ('{a="b"} | pattern "<a> <a>"', "twice"),
    ('{a="b"} |> "<name> x"', "<_> only"),
    ('{a="b"} | json x="a..b"', "no path"),
    ('{a="b"} | x > "5"', "= != =~ !~"),
    ('{a="b"} | x > 5parsecs', "no text, number, duration or size"),
    ('{a="b"} |= ip("300.1.1.1")', "no address"),
    ('{a="b"} |~ ip("10.0.0.1")', "ip\\(\\) follows"),
    ('{a="b"} | line_format "{{ .a | nope }}"', "function nope is not supported"),
    ('{a="b"} | line_format "{{ range .a }}{{ end }}"', "range.* is not supported"),
    ('{a="b"} | line_format "{{ if .a }}"', "without {{end}}"),
    ('{a="b"} | line_format "{{ .a "', "{{ without }}"),
    ('{a="b"} | label_format a=b, a=c', "twice"),
    ('count_over_time({a="b"})', "a range, such as"),
    ('count_over_time({a="b"}[5])', "no duration"),
    ('count_over_time({a="b"} | unwrap x [5m])', "remove | unwrap"),
    ('sum_over_time({a="b"}[5m])', "needs | unwrap"),
    ('rate({a="b"}[5m]) by (x)', "takes no by"),
    ('topk(sum(rate({a="b"}[5m])))', "a number"),
    ('topk(0, rate({a="b"}[5m]))', "whole number"),
    ('sum({a="b"})', "numbers, not lines"),
    ('{a="b"} + 1', "lines"),
    ('1 and rate({a="b"}[5m])', "vectors on both sides"),
    ("approx_topk(5, x)", "approx_topk is not supported"),
    ("magic(1)", "unknown function magic"),
    ('1 + bool 2', "bool follows comparisons"),
    ('{a="b"} extra', "unexpected extra"),
    ('{a="b"}\n  | json\n  | x >', "line 3"),
    ("(" * 100 + "1" + ")" * 100, "nested more than"),
]  # fmt: skip


@pytest.mark.parametrize(("query", "message"), WRONG, ids=[query[:40] for query, _ in WRONG])
def test_errors_say_where_and_what(query: str, message: str) -> None:
    with pytest.raises(Malformed, match=message):
        parse_logql(query)


WRITTEN = [
    ('{ a = "b",c!~`d.*` }|="x"!="y"', '{a="b", c!~"d.*"} |= "x" != "y"'),
    ('{a="b"}|json|logfmt --strict|status>=500 and dur>5ms', '{a="b"} | json | logfmt --strict | status >= 500 and dur > 5ms'),
    ('{a="b"} | (x="1" or y="2"),z="3"', '{a="b"} | (x="1" or y="2") and z="3"'),
    ('{a="b"} |= ip("10.0.0.0/8") or "x"', '{a="b"} |= ip("10.0.0.0/8") or "x"'),
    ('{"service.name"="b"} | drop x, y=~"z" | keep q', '{"service.name"="b"} | drop x, y=~"z" | keep q'),
    ('{a="b"} | label_format c=d, e="{{.f}}" | line_format `{{.g}} "h"`', '{a="b"} | label_format c=d, e="{{.f}}" | line_format `{{.g}} "h"`'),
    ('{a="b"} | json x="y[0]", z | unpack | decolorize', '{a="b"} | json x="y[0]", z="z" | unpack | decolorize'),
    ('{a="b"} | pattern "<x> <_>" | regexp `(?P<n>\\d)`', '{a="b"} | pattern "<x> <_>" | regexp `(?P<n>\\d)`'),
    ('sum(rate({a="b"}[90s]))by(x)', 'sum by (x) (rate({a="b"} [1m30s]))'),
    ('quantile_over_time(.99,{a="b"}|unwrap duration(d)|__error__=""[1h]offset 1d)by(x)', 'quantile_over_time(0.99, {a="b"} | unwrap duration(d) | __error__="" [1h] offset 24h) by (x)'),
    ("1+2*3", "1 + (2 * 3)"),
    ("(1+2)*3", "(1 + 2) * 3"),
    ('topk(3,rate({a="b"}[1m])) > bool on(x) group_left(y) vector(2)', 'topk (3, rate({a="b"} [1m])) > bool on (x) group_left (y) vector(2)'),
    ('label_replace(vector(1),"a","$1","b","(.*)")', 'label_replace(vector(1), "a", "$1", "b", "(.*)")'),
]  # fmt: skip


@pytest.mark.parametrize(("query", "written"), WRITTEN, ids=[query for query, _ in WRITTEN])
def test_queries_are_written_in_one_form(query: str, written: str) -> None:
    """What is written means the same, and stays as it is."""
    assert logql_text(parse_logql(query)) == written
    assert parse_logql(written) == parse_logql(query)


MUTANTS = 4000
WORDS = re.compile(r"\w+|\s+|[^\w\s]")
HOSTILE = (
    '{"a":1}',
    '{"_entry":[',
    'a=b c="d',
    "",
    "10.0.0.1 -",
    "\x1b[31mx",
    "crab: \U0001f980",
    '{"half": "\\ud83e", "whole": "\\ud83e\\udd80", "\\udd80": {"a": ["\\ud83e"]}}',
    'half="\\ud83e"',
)


def test_mutated_queries_are_read_or_refused() -> None:
    """Nothing but `Malformed`; what is read is written so that it means the same, and runs."""
    chance = random.Random(24)
    queries = [*LINES, *NUMBERS, *(query for query, _ in WRITTEN)]
    words = [word for query in queries for word in WORDS.findall(query)]
    read_count = 0
    for _ in range(MUTANTS):
        parts = WORDS.findall(chance.choice(queries))
        at = chance.randrange(len(parts))
        parts[at : at + chance.randrange(3)] = [chance.choice(words)] * chance.randrange(2)
        try:
            expression = parse_logql("".join(parts))
        except Malformed:
            continue
        read_count += 1
        assert parse_logql(logql_text(expression)) == expression
        if isinstance(expression, LogSelection):
            steps = compile_stages(expression.stages)
            for text in HOSTILE:
                line = LogLine(1, text, {"service_name": "x"}, {"http_route": "/r"})
                passes(line, steps)
                labels = line.labels()
                "\n".join((line.line, *labels, *labels.values())).encode()  # is UTF-8
    assert read_count > MUTANTS // 10
