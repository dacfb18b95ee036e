"""What is refused, and where; and that nothing else than `Malformed` comes of any text."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frazil.errors import Malformed
from frazil.languages.traceql.conditions import SpanJoins, condition_sql
from frazil.languages.traceql.nodes import filters_in
from frazil.languages.traceql.parser import DEPTH_MAX, LEXEMES_MAX, parse_traceql

REFUSED = [
    ("", "the end of the query is not expected"),
    ("{", "the end of the query is not expected"),
    ("}", "'}' is not expected here; write a filter"),
    ("{ name }", "name is not a condition"),
    ("{ name = }", "'}' is not expected here"),
    ("{ foo = 1 }", "'foo' is not known; attributes need a scope"),
    ("{ name = 'x' }", "is not TraceQL (character 10"),
    ('{ name = "x }', "is not TraceQL (character 10"),
    ("{ name = 3 }", "name is a text, which cannot be compared by = with 3, a number"),
    ("{ status = 3 }", "status is a status"),
    ("{ status > error }", "cannot be compared by >"),
    ("{ status =~ `err.*` }", "status is a status; =~ needs text"),
    ("{ kind = error }", "kind is a kind, which cannot be compared by = with error, a status"),
    ('{ duration = "x" }', "duration is a number"),
    ("{ duration =~ `1.*` }", "duration is a number; =~ needs text"),
    ("{ duration }", "duration is not a condition"),
    ("{ duration && true }", "duration is not a condition"),
    ("{ 1 + 1 }", "1 + 1 is not a condition"),
    ('{ "x" }', "is not a condition"),
    ("{ span.x > nil }", "nil cannot be compared by >"),
    ("{ span.x =~ `(` }", "is not a regular expression of RE2"),
    ("{ span.x =~ `(?=x)` }", "is not a regular expression of RE2"),
    ("{ span.x =~ span.y }", "needs a regular expression in quotes"),
    ("{ span.x =~ 3 }", "needs a regular expression in quotes"),
    ("{ name + 1 = 2 }", "name is a text, with which one cannot calculate"),
    ("{ parent.span.x = 1 }", "'parent.span.x' is not supported; use { … } > { … }"),
    ("{ nestedSetLeft > 3 }", "nestedSetLeft can be selected, but not compared"),
    ("{ nestedSetParent > 3 }", "nestedSetParent can be selected, but not compared"),
    ("{ event:name = link:spanID }", "events cannot be compared with links"),
    ("{ span.x = 99999999999999999999 }", "too large"),
    ("{ span.x = 1 = 2 }", "'=' is not expected here"),
    ("{ } { }", "'{' is not expected here"),
    ("{ } |", "the end of the query"),
    ("{ } | count()", "compare with a number"),
    ("{ } | count(duration) > 1", "'duration' is not expected here; write )"),
    ("{ } | avg() > 1", "')' is not expected here"),
    ("{ } | avg(duration) > name", "is not a number"),
    ("{ } | by()", "')' is not expected here"),
    ("{ } | select(1)", "'1' is not an attribute"),
    ("{ } | topk(3)", "'topk' needs series"),
    ("{ } | rate", "write ("),
    ("{ } | rate(duration)", "'duration' is not expected here"),
    ("{ } | quantile_over_time(duration)", "name quantiles"),
    ("{ } | quantile_over_time(duration, 2)", "'2' is not expected here"),
    ("{ } | rate() | rate()", "'rate' is not supported after a metric"),
    ("{ } | rate() | topk(0)", "takes a number from 1"),
    ("{ } | rate() | topk(x)", "'x' is not a whole number"),
    ("{ } | rate() > x", "'x' is not a number"),
    ("{ } | compare()", "')' is not expected here"),
    ("{ } | compare({ }, 1, 2)", "takes { … }, top, start, end"),
    ("{ } with (speed=true)", "'speed' is not a known hint"),
    ("{ } >", "the end of the query"),
    ("{ } => { }", "is not expected here"),
    (f"{{ {'(' * (DEPTH_MAX + 1)}true{')' * (DEPTH_MAX + 1)} }}", "nested too deeply"),
    (f"{{ {'!' * (DEPTH_MAX + 1)}true }}", "too many signs"),
    (f"{{ {' && '.join(['true'] * LEXEMES_MAX)} }}", f"more than {LEXEMES_MAX} parts"),
    ("{ " + "x" * 20_000, "use at most 16384"),
]


def compiled(query: str) -> None:
    for each in filters_in(parse_traceql(query).pipeline):
        if each.condition is not None:
            condition_sql(each.condition, SpanJoins())


@pytest.mark.parametrize(("query", "why"), REFUSED, ids=[query[:40] for query, _ in REFUSED])
def test_what_is_wrong_is_said(query: str, why: str) -> None:
    with pytest.raises(Malformed) as refused:
        compiled(query)
    assert why in str(refused.value)


def test_the_longest_query_is_compiled() -> None:
    """What the limits admit does not exhaust the stack."""
    chain = " && ".join(["true"] * ((LEXEMES_MAX - 4) // 2))
    compiled(f"{{ {chain} }}")
    compiled(f"{{ {'(' * DEPTH_MAX}{'!' * DEPTH_MAX}true{')' * DEPTH_MAX} }}")


PARTS = st.sampled_from(
    [
        *"{}()|=<>~!&+-*/^%,. \né",
        *("&&", "||", "=~", "!>>", "&~", "count", "by", "select", "rate", "with", "compare"),
        *("name", "duration", "status", "error", "nil", "true", ".a", "span.b", "event.c", "1"),
        *("2ms", '"x"', "`y", "quantile_over_time", "9" * 30),
    ]
)


@given(st.lists(PARTS, max_size=12).map("".join))
def test_any_text_is_parsed_or_refused(query: str) -> None:
    with contextlib.suppress(Malformed):
        compiled(query)
