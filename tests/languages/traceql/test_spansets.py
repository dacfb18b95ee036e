"""Structural operators, aggregates, groups, pipelines: against Python's own tree of spans."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

import pytest

from frazil.errors import TooLarge
from frazil.languages.traceql import candidates
from frazil.languages.traceql.parser import parse_traceql
from frazil.languages.traceql.search import find_by_traceql
from frazil.query.search.filters import EPOCH, MICROSECOND, Ask, TimeRange
from tests.languages.traceql.spans import (
    BY_ID,
    MS,
    SPANS,
    OneSpan,
    ancestors,
    ask,
    children,
    find,
    ids,
    parent,
    siblings,
    spansets,
    trace_of,
)
from tests.query.build import BEGIN_US

__all__ = ["ask"]

Says = Callable[[OneSpan], bool]
LEFT = 'resource.service.name = "web"'
RIGHT = "kind = server || kind = client"


def is_left(span: OneSpan) -> bool:
    return span.service == "web"


def is_right(span: OneSpan) -> bool:
    return span.kind in ("SERVER", "CLIENT")


def parents_of(span: OneSpan) -> list[OneSpan]:
    above = parent(span)
    return [] if above is None else [above]


def descendants(span: OneSpan) -> Iterator[OneSpan]:
    for child in children(span):
        yield child
        yield from descendants(child)


SEEN_FROM_RIGHT: dict[str, Callable[[OneSpan], object]] = {
    ">": parents_of,
    ">>": ancestors,
    "<": children,
    "<<": descendants,
    "~": siblings,
}
"""Where spans of the left side are, seen from one of the right side."""
SEEN_FROM_LEFT: dict[str, Callable[[OneSpan], object]] = {
    ">": children,
    ">>": descendants,
    "<": parents_of,
    "<<": ancestors,
    "~": siblings,
}
SIDES: list[tuple[str, Says]] = [
    (LEFT, is_left),
    (RIGHT, is_right),
    ("status = error", lambda s: s.status == "ERROR"),
    ("", lambda s: True),
    ('name = "load"', lambda s: s.name == "load"),
]


def related(sign: str, left: Says, right: Says) -> list[int]:
    return [
        s.id
        for s in SPANS
        if right(s) and any(map(left, SEEN_FROM_RIGHT[sign](s)))  # type: ignore[call-overload]
    ]


@pytest.mark.parametrize("sign", SEEN_FROM_RIGHT)
@pytest.mark.parametrize(("left", "right"), list(itertools.permutations(SIDES, 2)))
def test_structural_operators(
    ask: Ask, sign: str, left: tuple[str, Says], right: tuple[str, Says]
) -> None:
    """Spans of the right side, where the operator says; those that are elsewhere; and both
    sides."""
    wanted = related(sign, left[1], right[1])
    assert ids(find(ask, f"{{ {left[0]} }} {sign} {{ {right[0]} }}")) == wanted
    others = [span.id for span in SPANS if right[1](span) and span.id not in wanted]
    assert ids(find(ask, f"{{ {left[0]} }} !{sign} {{ {right[0]} }}")) == others
    from_left = {
        s.id
        for s in SPANS
        if left[1](s) and any(map(right[1], SEEN_FROM_LEFT[sign](s)))  # type: ignore[call-overload]
    }
    both = ids(find(ask, f"{{ {left[0]} }} &{sign} {{ {right[0]} }}"))
    assert both == sorted({*wanted, *from_left})


PIPELINES: list[tuple[str, list[list[int]]]] = [
    # Both, either, and how they bind.
    ('{ name = "load" } && { kind = client }', [[2, 3, 4]]),
    ('{ name = "load" } || { kind = client }', [[2, 3, 4], [12, 13]]),
    ('{ status = ok } || { name = "load" } && { kind = client }', [[2, 3, 4, 5]]),
    ('({ status = ok } || { name = "load" }) && { kind = client }', [[2, 3, 4, 5]]),
    ('{ kind = server } > { name = "load" } && { status = ok }', []),
    ('{ kind = server } > ({ name = "load" } && { status = ok })', [[5]]),
    ('{ kind = server } > { name = "load" } || { status = ok }', [[5], [12, 13]]),
    ("{ status = ok } && { status = error }", [[3, 5]]),
    ("{ status = ok } && { kind = consumer }", []),
    ("{ kind = server } >> { kind = client } >> { kind = client }", [[4]]),
    # A pipeline of filters.
    ("{ kind = server } | { status = error }", [[3]]),
    ("{ kind = server } | { status = ok }", []),
    ("{ } | { } | { name =~ `l.*` }", [[3], [12, 13]]),
    # count.
    ("{ } | count() > 2", [[1, 2, 3, 4, 5], [11, 12, 13]]),
    ("{ } | count() = 1", [[31]]),
    ("{ kind = server } | count() >= 2", [[1, 3], [11, 12, 13]]),
    ("{ kind = server } | count() != 3", [[1, 3]]),
    ("{ } | count() < 3", [[21, 22], [31]]),
    ("{ } | count() <= 2", [[21, 22], [31]]),
    ("{ } | 2 < count()", [[1, 2, 3, 4, 5], [11, 12, 13]]),
    ("count() > 4", [[1, 2, 3, 4, 5]]),
    # Other aggregates.
    ("{ } | avg(duration) > 100ms", [[21, 22]]),
    ("{ } | min(duration) < 1ms", [[31]]),
    ("{ } | max(duration) = 100ms", [[1, 2, 3, 4, 5]]),
    ("{ } | sum(duration) = 37ms", [[11, 12, 13]]),
    ("{ } | sum(span.http.status) = 700", [[1, 2, 3, 4, 5]]),
    ("{ } | avg(span.http.status) > 300", [[1, 2, 3, 4, 5]]),
    ("{ } | max(span.nothing) > 0", []),
    ("{ } | max(span.user) > 0", []),
    ("{ } | max(span.retries * 2) = 10", [[21, 22]]),
    ("{ } | max(.replica) = 9", [[1, 2, 3, 4, 5]]),
    # Arithmetic with aggregates.
    ("{ } | max(duration) - min(duration) > 100ms", []),
    ("{ } | max(duration) - min(duration) > 40ms", [[1, 2, 3, 4, 5], [21, 22]]),
    ("{ } | max(duration) > min(duration) * 10", [[1, 2, 3, 4, 5]]),
    ("{ } | sum(duration) / count() > 200ms", [[21, 22]]),
    ("{ } | (count() + 1) * 2 = 12", [[1, 2, 3, 4, 5]]),
    ("{ } | count() % 2 = 0", [[21, 22]]),
    ("{ } | count() ^ 2 > 20", [[1, 2, 3, 4, 5]]),
    ("{ } | count() > -1", [[1, 2, 3, 4, 5], [11, 12, 13], [21, 22], [31]]),
    ("{ } | count() / 0 > 1", []),
    # Groups.
    (
        "{ } | by(resource.service.name)",
        [[1, 2, 5], [3, 4], [11], [12, 13], [21, 22], [31]],
    ),
    ("{ } | by(resource.service.name) | count() > 1", [[1, 2, 5], [3, 4], [12, 13], [21, 22]]),
    ("{ } | by(span.cached) | count() = 1", [[3], [5], [11], [12], [13], [31]]),
    ("{ } | by(status) | count() > 2", [[1, 2, 4], [11, 12, 13]]),
    ("{ } | by(kind, name) | count() > 1", [[12, 13]]),
    ("{ kind = server } | by(name) | avg(duration) > 35ms", [[1], [3]]),
    ("{ } | by(duration > 30ms) | count() > 2", [[1, 2, 3], [11, 12, 13]]),
    ("{ } | by(name) | coalesce() | count() > 4", [[1, 2, 3, 4, 5]]),
    ("{ } | by(event:name) | count() = 1", [[3], [21], [22], [31]]),
    # Pipelines in parentheses.
    ("({ } | count() > 2) && ({ } | avg(duration) > 20ms)", [[1, 2, 3, 4, 5]]),
    ("({ } | count() = 1) || ({ kind = consumer })", [[21], [31]]),
    ("({ kind = server } | count() > 1) >> { kind = client }", [[2, 4]]),
    ("{ kind = server } >> ({ kind = client } | count() = 2)", [[2, 4]]),
    # Stages that change nothing.
    ("{ kind = consumer } | select(span.user)", [[21]]),
    ("{ kind = consumer } | select(name, .user) | count() = 1", [[21]]),
    ("{ kind = consumer } with (most_recent=true)", [[21]]),
]


@pytest.mark.parametrize(("query", "wanted"), PIPELINES, ids=[query for query, _ in PIPELINES])
def test_a_pipeline_finds_its_spansets(ask: Ask, query: str, wanted: list[list[int]]) -> None:
    """The spansets were found by hand."""
    assert spansets(find(ask, query)) == wanted


def test_values_of_spansets(ask: Ask) -> None:
    """Groups and aggregates are part of the answer."""
    found = find(ask, "{ kind = server } | by(name) | max(duration) > 30ms")
    values = [spanset.values for trace in found for spanset in trace.spansets]
    assert values == [
        (("by(name)", "GET /"), ("max(duration)", 100.0 * MS)),
        (("by(name)", "load"), ("max(duration)", 40.0 * MS)),
    ]


def test_values_of_spans(ask: Ask) -> None:
    """Spans show what the query names, with types; nested sets are numbered as trees are."""
    (trace,) = find(
        ask,
        '{ name = "load" && status = error } | select(.cached, span.http.status, nestedSetParent, '
        "nestedSetLeft, nestedSetRight, event.exception.type, resource.host.name, kind)",
    )
    (spanset,) = trace.spansets
    (span,) = spanset.spans
    assert (span.span_id, span.name, span.duration_nano) == (f"{3:016x}", "load", 40 * MS)
    assert span.values == {
        "status": {"stringValue": "error"},
        "cached": {"boolValue": False},
        "http.status": {"intValue": "500"},
        "nestedSetParent": {"intValue": "2"},
        "nestedSetLeft": {"intValue": "3"},
        "nestedSetRight": {"intValue": "6"},
        "exception.type": {"stringValue": "IOError"},
        "host.name": {"stringValue": "node-b"},
        "kind": {"stringValue": "server"},
    }
    assert trace.summary.root_name == "GET /"
    assert trace.summary.span_count == 5


def test_newest_traces_first(ask: Ask) -> None:
    """A limit keeps the newest, with and without structural operators."""
    for query in ("{ }", "{ } || { name = `x` }"):
        pipeline = parse_traceql(query).pipeline
        found = find_by_traceql(ask, pipeline, within=TimeRange(), limit=2)
        assert [int(trace.summary.trace_id, 16) for trace in found] == [4, 3]


def test_a_time_range_bounds_what_matches(ask: Ask) -> None:
    """Spans match within the range; their relatives may lie outside."""
    begin = EPOCH + BEGIN_US * MICROSECOND
    within = TimeRange(since=begin + 12_000 * MICROSECOND, until=begin + 1_002_000 * MICROSECOND)
    assert ids(find(ask, "{ }", within)) == [3, 4, 5, 11, 12]
    assert ids(find(ask, '{ } >> { name = "select" }', within)) == [4]
    assert ids(find(ask, '{ name = "call cart" } > { }', within)) == []
    assert ids(find(ask, '{ rootName = "GET /" && status = ok }', within)) == [5]


def test_many_candidates_are_read_in_parts(ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    """The answer is the same, however many traces are read at once."""
    whole = spansets(find(ask, "{ } | count() > 1"))
    monkeypatch.setattr(candidates, "TRACES_PER_READ", 1)
    assert spansets(find(ask, "{ } | count() > 1")) == whole
    monkeypatch.setattr(candidates, "CANDIDATES_MAX", 2)
    with pytest.raises(TooLarge, match="more than 2 traces"):
        find(ask, "{ } | count() > 1")


def test_the_oracle_knows_the_tree() -> None:
    """The orphan has no parent, and the siblings are of one trace."""
    assert parent(BY_ID[21]) is None
    assert [each.id for each in siblings(BY_ID[12])] == [13]
    assert [each.id for each in trace_of(BY_ID[31])] == [31]
