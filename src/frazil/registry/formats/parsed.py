"""ParsedSchema: a schema whose text is valid, in any language."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol


class NamedText(NamedTuple):
    """A schema that another one uses, under the name that it uses."""

    name: str
    text: str


class ParsedSchema(Protocol):
    """A schema. It never changes."""

    @property
    def text(self) -> str:
        """The text as it is stored: texts that differ in white space only are equal."""
        ...

    @property
    def normalized(self) -> str:
        """The text without differences that have no meaning."""
        ...

    def serialized(self) -> str:
        """The text in the form that clients ask for with `format=serialized`."""
        ...

    def unreadable(self, earlier: ParsedSchema) -> Sequence[str]:
        """Return why data of an earlier schema of the same language cannot be read with this one.
        Empty if it can."""
        ...
