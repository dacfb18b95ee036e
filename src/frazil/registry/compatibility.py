"""Is a schema compatible with the earlier versions of its subject, at a level?"""

from __future__ import annotations

from collections.abc import Sequence

from frazil.errors import Malformed
from frazil.registry.formats.parse import unreadable
from frazil.registry.formats.parsed import ParsedSchema
from frazil.registry.references import SchemaTexts
from frazil.registry.stored.errors import invalid_schema
from frazil.registry.stored.model import CompatibilityLevel, SchemaContent, SchemaVersion
from frazil.registry.stored.state import RegistryState

MESSAGES_MAX = 100
"""Reasons that are given."""


def incompatibilities(
    state: RegistryState,
    texts: SchemaTexts,
    parsed: ParsedSchema,
    content: SchemaContent,
    versions: Sequence[SchemaVersion],
    level: CompatibilityLevel,
) -> list[str]:
    """Return why a schema may not follow these versions. Empty if it may."""
    if level is CompatibilityLevel.NONE:
        return []
    reasons: list[str] = []
    for version in reversed(versions if level.is_transitive else versions[-1:]):
        if version.content.schema_type is not content.schema_type:
            reasons.append(
                f"version {version.version} is a {version.content.schema_type} schema, not "
                f"{content.schema_type}"
            )
            continue
        earlier = texts.parse(state, version.content, is_new=False)
        number = version.version
        try:
            if level.reads_earlier:
                reasons += [
                    f"cannot read data of version {number}: {each}"
                    for each in unreadable(parsed, earlier)
                ]
            if level.is_read_by_earlier:
                reasons += [
                    f"version {number} cannot read its data: {each}"
                    for each in unreadable(earlier, parsed)
                ]
        except Malformed as error:
            raise invalid_schema(str(error)) from None
        if len(reasons) > MESSAGES_MAX:
            break
    return reasons[:MESSAGES_MAX]
