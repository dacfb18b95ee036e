"""Names and values of attributes."""

from __future__ import annotations

from typing import Any

import pytest

from frazil.languages.traceql.tags import tag_names, tag_of, tag_values
from frazil.query.search.filters import ALWAYS, Ask
from tests.languages.traceql.spans import SPANS, ask

__all__ = ["ask"]


@pytest.mark.parametrize(
    ("scope", "wanted"),
    [
        ("span", {key for span in SPANS for key in span.tags}),
        ("resource", {key for span in SPANS for key in span.of_resource}),
        ("instrumentation", {"build"}),
        ("event", {"exception.type", "exception.message", "attempt"}),
        ("link", {"queue"}),
    ],
)
def test_names(ask: Ask, scope: str, wanted: set[str]) -> None:
    assert tag_names(ask, scope, within=ALWAYS, limit=100) == sorted(wanted)


@pytest.mark.parametrize(
    ("tag", "query", "wanted"),
    [
        ("span.user", None, [("string", "ann"), ("string", "bob")]),
        ("span.http.status", None, [("int", "200"), ("int", "404"), ("int", "500")]),
        ("span.cached", None, [("bool", "false"), ("bool", "true")]),
        ("span.ratio", None, [("float", "-2.0"), ("float", "0.5"), ("float", "1.5")]),
        ('span."weird key"', None, [("string", "yes")]),
        (".replica", None, [("int", "1"), ("int", "2"), ("int", "9")]),
        ("replica", None, [("int", "1"), ("int", "2"), ("int", "9")]),
        ("resource.replica", None, [("int", "1"), ("int", "2")]),
        ("service.name", '{ span.user = "ann" }', [("string", "mailer"), ("string", "web")]),
        ("name", "{ status = error && span.x = }", None),
        ("name", "{ status = error }", [("string", "connect"), ("string", "load")]),
        ("status", None, [("keyword", "ok"), ("keyword", "error"), ("keyword", "unset")]),
        ("event.exception.type", None, [("string", "IOError")]),
        ("event:name", None, [("string", "exception"), ("string", "retry")]),
        ("rootServiceName", None, [("string", "clock"), ("string", "mailer"), ("string", "web")]),
        ("duration", "{ kind = producer }", [("duration", "200000000")]),
        ("nestedSetLeft", None, []),
        ("span.nothing", None, []),
    ],
)
def test_values(ask: Ask, tag: str, query: str | None, wanted: list[Any] | None) -> None:
    """Values have the type in which they were sent; an unfinished query bounds nothing."""
    if wanted is None:
        wanted = [("string", name) for name in sorted({span.name for span in SPANS})]
    found = tag_values(ask, tag_of(tag), query, within=ALWAYS, limit=100)
    assert [(each.type, each.value) for each in found] == wanted
