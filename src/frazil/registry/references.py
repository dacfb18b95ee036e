"""SchemaTexts: schemas with those they refer to, parsed and remembered."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence

from frazil.errors import Malformed
from frazil.registry.formats.parse import parse
from frazil.registry.formats.parsed import NamedText, ParsedSchema
from frazil.registry.stored.errors import invalid_schema
from frazil.registry.stored.model import SchemaContent, SchemaReference
from frazil.registry.stored.state import RegistryState

REFERENCES_MAX = 1000
"""Schemas that one may use, with those that they use."""
DEPTH_MAX = 100
"""Of references to references."""
REMEMBERED_MAX = 1000
REMEMBERED_CHARS = 64 * 1024
"""Longer texts are parsed each time."""
LATEST = -1
"""As the version of a reference: the last one."""


class SchemaTexts:
    """Parses contents. Owned by the registry's lock."""

    def __init__(self) -> None:
        self._parsed: OrderedDict[tuple[bytes, bool], ParsedSchema] = OrderedDict()

    def parse(self, state: RegistryState, content: SchemaContent, *, is_new: bool) -> ParsedSchema:
        """Parse a content. `RegistryError` if it is invalid, or uses what is not there."""
        key = content.digest(), is_new
        known = self._parsed.get(key)
        if known is not None and not content.references:
            self._parsed.move_to_end(key)
            return known
        used = referenced_texts(state, content, is_new=is_new)
        try:
            parsed = parse(content.schema_type, content.text, used, is_new=is_new)
        except Malformed as error:
            raise invalid_schema(str(error)) from None
        if not content.references and len(content.text) <= REMEMBERED_CHARS:
            self._parsed[key] = parsed
            if len(self._parsed) > REMEMBERED_MAX:
                self._parsed.popitem(last=False)
        return parsed


def referenced_texts(
    state: RegistryState, content: SchemaContent, *, is_new: bool
) -> list[NamedText]:
    """Return what a schema uses, each once, after what that uses."""
    found: dict[str, NamedText] = {}
    _collect(state, content, found, set(), is_new=is_new)
    return list(found.values())


def _collect(
    state: RegistryState,
    content: SchemaContent,
    found: dict[str, NamedText],
    inside: set[tuple[str, int]],
    *,
    is_new: bool,
) -> None:
    for reference in content.references:
        if reference.name in found:
            continue
        subject, number = resolved(state, reference)
        version = state.version(subject, number)
        if version is None or (is_new and version.is_deleted):
            raise invalid_schema(
                f"the reference {reference.name} is to version {reference.version} of subject "
                f"{subject}, which is not registered"
            )
        if version.content.schema_type is not content.schema_type:
            raise invalid_schema(
                f"the reference {reference.name} is a {version.content.schema_type} schema; a "
                f"{content.schema_type} schema uses others of its type only"
            )
        if (subject, number) in inside:
            raise invalid_schema(f"the reference {reference.name} leads back to itself")
        if len(found) >= REFERENCES_MAX or len(inside) >= DEPTH_MAX:
            raise invalid_schema(
                f"it uses more than {REFERENCES_MAX} schemas, or more than {DEPTH_MAX} in a row"
            )
        within = {*inside, (subject, number)}
        _collect(state, version.content, found, within, is_new=False)
        found.setdefault(reference.name, NamedText(reference.name, version.content.text))


def resolved(state: RegistryState, reference: SchemaReference) -> tuple[str, int]:
    """Return the subject and the version of a reference, of which the latest is -1."""
    if reference.version != LATEST:
        return reference.subject, reference.version
    versions = state.versions(reference.subject)
    return reference.subject, versions[-1].version if versions else 0


def pinned(state: RegistryState, references: Sequence[SchemaReference]) -> list[SchemaReference]:
    """Return the references, to versions that do not move."""
    return [
        SchemaReference(name=each.name, subject=each.subject, version=resolved(state, each)[1])
        for each in references
    ]
