"""Which types of connectors there are: ours, and those that installed packages offer.

A package offers one as an entry point:

    [project.entry-points."frazil.connectors"]
    hello = "hello_connector:HELLO"          # a ConnectorType

A type is imported by the process of its connector only: what a package does when it is imported
cannot hurt a node.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points

from frazil.connectors.contract import ConnectorType
from frazil.errors import Malformed, Unknown

GROUP = "frazil.connectors"
BUILT_IN: Mapping[str, str] = {
    "files": "frazil.connectors.files.files_source:FILES",
    "http": "frazil.connectors.http.http_type:HTTP",
    "postgres": "frazil.connectors.postgres.connector_type:POSTGRES",
}
"""Name of a type -> module and name of its `ConnectorType`."""


def type_names() -> list[str]:
    """Return all types, without importing any."""
    return sorted({*BUILT_IN, *_installed()})


def connector_type(name: str) -> ConnectorType:
    """Import a type. `Unknown` if there is none, `Malformed` if it cannot be used."""
    if name in BUILT_IN:
        module, _, attribute = BUILT_IN[name].partition(":")
        found = getattr(import_module(module), attribute)
    elif name in (installed := _installed()):
        point = installed[name]
        try:
            found = point.load()
        except Exception as error:  # top of loop: whatever a package of others does
            raise Malformed(
                f"connector type {name} cannot be imported from {point.value}: {error!r}"
            ) from error
    else:
        raise Unknown(
            f"there is no connector type {name}; there are: {', '.join(type_names()) or 'none'}. "
            f"Others are packages with an entry point of the group {GROUP}"
        )
    if not isinstance(found, ConnectorType):
        raise Malformed(f"connector type {name} is a {type(found).__name__}, not a ConnectorType")
    return found


def _installed() -> dict[str, EntryPoint]:
    return {point.name.lower(): point for point in entry_points(group=GROUP)}
