"""AvroSchema: a parsed text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from frazil.registry.formats.avro.compatibility import unreadable
from frazil.registry.formats.avro.parser import Names, parse_avro
from frazil.registry.formats.avro.printer import avro_document
from frazil.registry.formats.avro.types import AvroType
from frazil.registry.formats.json_text import parse_json, print_json
from frazil.registry.formats.parsed import NamedText, ParsedSchema


@dataclass(frozen=True, slots=True, kw_only=True)
class AvroSchema:
    """A schema, and the names that are defined by those it refers to."""

    root: AvroType
    text: str
    referenced: frozenset[str]

    @property
    def normalized(self) -> str:
        return print_json(avro_document(self.root, self.referenced, is_sorted=True))

    def serialized(self) -> str:
        return self.text

    def unreadable(self, earlier: ParsedSchema) -> Sequence[str]:
        assert isinstance(earlier, AvroSchema)
        return unreadable(self.root, earlier.root)


def parse_avro_schema(text: str, references: Sequence[NamedText], *, is_new: bool) -> AvroSchema:
    """Parse a schema and those it refers to. `Malformed` says what is wrong. Defaults are checked
    if it is new: earlier releases of other registries stored them unchecked."""
    names: Names = {}
    for reference in references:
        parse_avro(parse_json(reference.text), names, checks_defaults=False)
    referenced = frozenset(names)
    root = parse_avro(parse_json(text), names, checks_defaults=is_new)
    return AvroSchema(
        root=root, text=print_json(avro_document(root, referenced)), referenced=referenced
    )
