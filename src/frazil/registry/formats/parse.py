"""parse: a text of any language. The code of each is imported when it is needed."""

from __future__ import annotations

from collections.abc import Sequence

from frazil.errors import Malformed
from frazil.registry.formats.parsed import NamedText, ParsedSchema

TOO_DEEP = "its types are nested too deeply"


def parse(
    schema_type: str, text: str, references: Sequence[NamedText], *, is_new: bool
) -> ParsedSchema:
    """Parse a schema. `references` are those it uses, each after those it uses itself. `Malformed`
    says what is wrong."""
    try:
        if schema_type == "PROTOBUF":
            from frazil.registry.formats.protobuf.schema import parse_protobuf_schema

            return parse_protobuf_schema(text, references)
        if schema_type == "JSON":
            from frazil.registry.formats.json_schema.schema import parse_json_schema

            return parse_json_schema(text, references)
        from frazil.registry.formats.avro.schema import parse_avro_schema

        return parse_avro_schema(text, references, is_new=is_new)
    except RecursionError:
        raise Malformed(TOO_DEEP) from None


def unreadable(later: ParsedSchema, earlier: ParsedSchema) -> Sequence[str]:
    """Return why data of one schema cannot be read with another. Empty if it can."""
    try:
        return later.unreadable(earlier)
    except RecursionError:
        raise Malformed(TOO_DEEP) from None
    except OverflowError as error:
        raise Malformed(f"its numbers cannot be compared: {error}") from None
