"""JsonSchema: a parsed text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from frazil.registry.formats.json_schema.checks import check_keywords
from frazil.registry.formats.json_schema.compatibility import unreadable_json
from frazil.registry.formats.json_schema.documents import JsonDocuments
from frazil.registry.formats.json_text import parse_json, print_json
from frazil.registry.formats.parsed import NamedText, ParsedSchema


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonSchema:
    """A schema and those it refers to."""

    document: Any
    documents: JsonDocuments

    @property
    def text(self) -> str:
        return print_json(self.document)

    @property
    def normalized(self) -> str:
        return print_json(self.document, sort_keys=True)

    def serialized(self) -> str:
        return self.text

    def unreadable(self, earlier: ParsedSchema) -> Sequence[str]:
        assert isinstance(earlier, JsonSchema)
        before, after = earlier.documents, self.documents
        return unreadable_json(before.root, before, after.root, after)


def parse_json_schema(text: str, references: Sequence[NamedText]) -> JsonSchema:
    """Parse a schema and those it refers to. `Malformed` says what is wrong."""
    document = parse_json(text)
    check_keywords(document)
    documents = JsonDocuments(document, references)
    for node in documents.check():
        check_keywords(node.value)
    return JsonSchema(document=document, documents=documents)
