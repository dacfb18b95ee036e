"""Connections: addresses and credentials of other systems, which statements name."""

from __future__ import annotations

from collections.abc import Mapping

from frazil.errors import Unknown


def connection_options(name: str, connections: Mapping[str, str]) -> dict[str, str]:
    """Return the options of a connection: entries `name.option`. `Unknown` if there are none."""
    if not name:
        return {}
    prefix = f"{name}."
    options = {
        key.removeprefix(prefix).lower(): value
        for key, value in connections.items()
        if key.startswith(prefix)
    }
    if not options:
        known = ", ".join(sorted({key.partition(".")[0] for key in connections})) or "none"
        raise Unknown(f"there is no connection {name} in [connections]; there are: {known}")
    return options
