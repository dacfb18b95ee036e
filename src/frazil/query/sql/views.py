"""Views that users define: which of them a text needs, bases first.

A view is expanded where a text is planned, from its own text, by the same read-only planner. One
that cannot be expanded is an error only for a text that reads it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import msgspec

from frazil.errors import Malformed, Rejected, TooLarge
from frazil.model import KiB
from frazil.query.sql.dialect import translate
from frazil.results import tokens

DEPTH_MAX = 8
"""Views over views."""
EXPANDED_CHARS_MAX = 256 * KiB
"""Text of a view with the views in it, each as often as it is named."""


class ViewDefinition(msgspec.Struct, frozen=True, kw_only=True):
    """A view as it is defined. `error` is set if its definition cannot be read."""

    query: str
    error: str | None = None


class EngineViews(msgspec.Struct, frozen=True, kw_only=True):
    """The views for one text, each after those that it names."""

    texts: tuple[tuple[str, str], ...] = ()
    """Name, and query translated for DataFusion."""
    failures: dict[str, str] = {}
    """Name -> why it cannot be expanded."""


def views_for(
    text: str, views: Mapping[str, ViewDefinition], *, is_listing: bool = False
) -> EngineViews:
    """Return the views that a text may name, and those in them; all if it may list tables."""
    if not views:
        return EngineViews()
    lower = text.lower()
    if is_listing:
        names: list[str] = list(views)
    else:
        near = {name for name in views if name in lower}
        names = list(names_in(text, near)) if near else []
    expansion = _Expansion(views)
    for name in names:
        expansion.visit(name, ())
    return EngineViews(texts=tuple(expansion.texts.items()), failures=expansion.failures)


def names_in(text: str, names: Mapping[str, object] | set[str]) -> Iterator[str]:
    """Yield the names of `names` in a text, as often as they are in it."""
    for token in tokens(text):
        if token.kind in ("word", "quoted") and token.name in names:
            yield token.name


@dataclass(slots=True)
class _Expansion:
    """Visits views and those they name, depth first."""

    views: Mapping[str, ViewDefinition]
    texts: dict[str, str] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)
    sizes: dict[str, int] = field(default_factory=dict)

    def visit(self, name: str, above: tuple[str, ...]) -> None:
        if name in self.texts or name in self.failures:
            return
        try:
            self.texts[name] = self._expand(name, above)
        except Rejected as error:
            self.failures[name] = str(error)

    def _expand(self, name: str, above: tuple[str, ...]) -> str:
        view = self.views[name]
        if view.error is not None:
            raise Rejected(view.error)
        path = (*above, name)
        if len(path) > DEPTH_MAX:
            raise TooLarge(f"more than {DEPTH_MAX} views over views: {' -> '.join(path)}")
        size = len(view.query)
        for inner in names_in(view.query, {*self.views}):
            if inner in path:
                raise Malformed(f"the view refers to itself: {' -> '.join((*path, inner))}")
            self.visit(inner, path)
            size += self.sizes.get(inner, 0)
            if size > EXPANDED_CHARS_MAX:
                raise TooLarge(
                    f"the view with the views in it has more than {EXPANDED_CHARS_MAX} characters"
                )
        self.sizes[name] = size
        translated = translate(view.query)
        if translated.as_ofs or translated.changes:
            raise Malformed(
                "a view cannot have FOR SYSTEM_TIME or FOR SYSTEM_VERSION AS OF, nor changes(…)"
            )
        return translated.text
