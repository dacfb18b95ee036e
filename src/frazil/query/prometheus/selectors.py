"""Selectors of series, as `match[]` has them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import promql_parser

from frazil.errors import Malformed
from frazil.query.promql.points import LabelMatcher

_OPERATORS: dict[str, Literal["=", "!=", "=~", "!~"]] = {
    "MatchOp.Equal": "=",
    "MatchOp.NotEqual": "!=",
    "MatchOp.Re": "=~",
    "MatchOp.NotRe": "!~",
}


def selector_matchers(text: str) -> Sequence[LabelMatcher]:
    """Return the conditions of a selector. `Malformed` if it is none."""
    try:
        tree: Any = promql_parser.parse(text)
    except ValueError as error:
        raise Malformed(f"invalid PromQL: {error}") from None
    matchers = [
        LabelMatcher(each.name, _OPERATORS[str(each.op)], each.value)
        for each in tree.matchers.matchers
    ]
    if tree.name is not None and all(each.name != "__name__" for each in matchers):
        matchers.insert(0, LabelMatcher("__name__", "=", tree.name))
    return matchers
