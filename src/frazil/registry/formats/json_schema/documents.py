"""JsonDocuments: a schema and those it refers to; what a `$ref` points at. Nothing is fetched."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple
from urllib.parse import unquote, urldefrag, urljoin

from frazil.errors import Malformed
from frazil.registry.formats.json_text import parse_json
from frazil.registry.formats.parsed import NamedText

REFS_MAX = 100
"""References to references."""

SUBSCHEMAS = (
    *("additionalItems", "additionalProperties", "contains", "else", "if", "items", "not"),
    *("propertyNames", "then", "unevaluatedItems", "unevaluatedProperties"),
)
"""Keywords with a schema; `items` may have an array of them."""
SUBSCHEMA_LISTS = ("allOf", "anyOf", "oneOf", "items", "prefixItems")
SUBSCHEMA_MAPS = (
    *("$defs", "definitions", "dependencies", "dependentSchemas", "patternProperties"),
    "properties",
)


class SchemaNode(NamedTuple):
    """A schema in a document."""

    value: Any
    base: str
    """The URI of what is around it: references are relative to it."""


class JsonDocuments:
    """Finds schemas by URI. Never changes once it is made."""

    def __init__(self, document: Any, references: Sequence[NamedText]) -> None:
        self._by_uri: dict[str, SchemaNode] = {}
        for reference in references:
            self._add(parse_json(reference.text), reference.name)
        self.root = self._add(document, "")

    def _add(self, document: Any, name: str) -> SchemaNode:
        root = SchemaNode(document, name)
        self._by_uri[name] = root
        for node in walk(root):
            if not isinstance(node.value, dict):
                continue
            self._by_uri.setdefault(node.base, node)
            for keyword in ("$anchor", "$dynamicAnchor"):
                anchor = node.value.get(keyword)
                if isinstance(anchor, str):
                    self._by_uri.setdefault(f"{node.base}#{anchor}", node)
        return based(root)

    def resolved(self, node: SchemaNode) -> SchemaNode:
        """Follow references until a schema is none. `Malformed` if one leads nowhere."""
        for _ in range(REFS_MAX):
            node = based(node)
            reference = node.value.get("$ref") if isinstance(node.value, dict) else None
            if not isinstance(reference, str):
                return node
            node = self._find(reference, node.base)
        raise Malformed(f"$ref {reference} leads to itself")

    def _find(self, reference: str, base: str) -> SchemaNode:
        uri, fragment = urldefrag(_joined(base, reference))
        if fragment and not fragment.startswith("/"):
            found = self._by_uri.get(f"{uri}#{fragment}")
            if found is not None:
                return found
        written = urldefrag(reference).url
        document = self._by_uri.get(uri) or (self._by_uri.get(written) if written else None)
        if document is None:
            raise Malformed(f"$ref {reference[:80]} is not in the schema; name it in references")
        if not fragment:
            return document
        return _at_pointer(document, fragment, reference)

    def check(self) -> Iterator[SchemaNode]:
        """Yield every schema of the root's document. `Malformed` if a reference leads nowhere."""
        for node in walk(self.root):
            self.resolved(node)
            yield node


def based(node: SchemaNode) -> SchemaNode:
    """Return a schema with the base that it sets for what is in it."""
    if isinstance(node.value, dict):
        for keyword in ("$id", "id"):
            own = node.value.get(keyword)
            if isinstance(own, str) and not own.startswith("#"):
                return SchemaNode(node.value, urldefrag(_joined(node.base, own)).url)
    return node


def children(node: SchemaNode) -> Iterator[SchemaNode]:
    """Yield the schemas directly within one."""
    if not isinstance(node.value, dict):
        return
    value = node.value
    for keyword in SUBSCHEMAS:
        if isinstance(value.get(keyword), (dict, bool)):
            yield SchemaNode(value[keyword], node.base)
    for keyword in SUBSCHEMA_LISTS:
        if isinstance(value.get(keyword), list):
            yield from (SchemaNode(each, node.base) for each in value[keyword])
    for keyword in SUBSCHEMA_MAPS:
        if isinstance(value.get(keyword), dict):
            for each in value[keyword].values():
                if not isinstance(each, list):  # a dependency may be names
                    yield SchemaNode(each, node.base)


def walk(root: SchemaNode) -> Iterator[SchemaNode]:
    """Yield a schema and all within it."""
    waiting = [root]
    while waiting:
        node = based(waiting.pop())
        yield node
        waiting += children(node)


def _joined(base: str, reference: str) -> str:
    try:
        joined = urljoin(base, reference)
    except ValueError as error:
        raise Malformed(f"{reference[:80]} is no URI reference: {error}") from None
    # An empty fragment and none are the same document.
    return joined if joined or not reference.startswith("#") else reference


def _at_pointer(document: SchemaNode, pointer: str, reference: str) -> SchemaNode:
    node = based(document)
    for part in unquote(pointer).split("/")[1:]:
        name = part.replace("~1", "/").replace("~0", "~")
        value = node.value
        if isinstance(value, dict) and name in value:
            node = based(SchemaNode(value[name], node.base))
        elif isinstance(value, list) and name.isascii() and name.isdigit() and len(name) < 8:
            if int(name) >= len(value):
                raise Malformed(f"$ref {reference[:80]} leads nowhere")
            node = based(SchemaNode(value[int(name)], node.base))
        else:
            raise Malformed(f"$ref {reference[:80]} leads nowhere")
    return node
