"""Selectors of series, as `match[]` has them."""

from __future__ import annotations

from collections.abc import Sequence

from frazil.errors import Malformed
from frazil.languages.promql.parser import parse
from frazil.languages.promql.points import LabelMatcher
from frazil.languages.promql.syntax import InstantSelector


def selector_matchers(text: str) -> Sequence[LabelMatcher]:
    """Return the conditions of a selector. `Malformed` if it is none."""
    selector = parse(text)
    if not isinstance(selector, InstantSelector):
        raise Malformed(f'{text} is not a selector; use one such as up{{job="api"}}')
    return selector.matchers
