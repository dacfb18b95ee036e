"""Settings from the environment: `FRAZIL_LOG__DISK_BYTES_MAX` is log.disk_bytes_max."""

from __future__ import annotations

import re
from collections.abc import Mapping

from frazil.config.settings import BETWEEN, PREFIX, settings
from frazil.config.sources import (
    Origin,
    SettingProblem,
    SettingValues,
    did_you_mean,
    most_similar,
    nearest,
)

FILE_VARIABLE = "FRAZIL_CONFIG"
OTHER_VARIABLES = frozenset({FILE_VARIABLE, "FRAZIL_TOKEN", "FRAZIL_URL"})
"""Variables of ours that are not settings; clients read the last two."""
KUBERNETES = re.compile(
    r"FRAZIL_(\w+_)?(SERVICE_(HOST|PORT(_\w+)?)|PORT_\d+_(TCP|UDP|SCTP)(_\w+)?)=.*"
    r"|FRAZIL_(\w+_)?PORT=(tcp|udp|sctp)://.*",
    re.DOTALL,
)
"""Variables that Kubernetes sets in containers when a service is called frazil."""
TYPO_SIMILARITY_MIN = 0.85
"""A variable this similar to one of ours, of 1, is a typo, and not a foreign variable."""


def add_environment(values: SettingValues, environ: Mapping[str, str]) -> None:
    """Add the settings of the environment; unknown variables that look like ours are problems.

    In the name of a map entry `__` is a dot and `_` a hyphen, as in PyIceberg. Names that cannot be
    written so come as JSON.
    """
    known = {setting.variable: setting.keys for setting in settings()}
    maps = {
        setting.variable + BETWEEN: setting.keys
        for setting in settings()
        if setting.kind.base == "map"
    }
    for variable in sorted(name for name in environ if name.startswith(PREFIX)):
        text, origin = environ[variable], Origin(source="environment", name=variable)
        map_prefix = next((name for name in maps if variable.startswith(name)), None)
        if variable in known:
            values.add_text(known[variable], text, origin)
        elif map_prefix is not None:
            entry = variable.removeprefix(map_prefix).lower()
            entry = entry.replace(BETWEEN, ".").replace("_", "-")
            values.add_text((*maps[map_prefix], entry), text, origin)
        elif variable not in OTHER_VARIABLES:
            _add_unknown(values, origin, text, [*known, *sorted(OTHER_VARIABLES)])


def _add_unknown(values: SettingValues, origin: Origin, text: str, known: list[str]) -> None:
    """Foreign variables may begin with our prefix, but do not contain `__`."""
    variable = origin.name
    is_ours = BETWEEN in variable
    if not is_ours and KUBERNETES.fullmatch(f"{variable}={text}"):
        return
    near = _nearest_variable(variable, known) if is_ours else _typo_of(variable, known)
    if is_ours or near:
        message = f"{origin.where} is not a setting{did_you_mean(near)}"
        values.problems.append(
            SettingProblem(
                kind="unknown", message=message, origin=origin, name=variable, suggestion=near
            )
        )


def _nearest_variable(variable: str, known: list[str]) -> str | None:
    """Return the nearest name; of a table its first setting, which shows how the name goes on."""
    inside = [name for name in known if name.startswith(variable + BETWEEN)]
    if inside:
        return inside[0]
    near = nearest(variable.removeprefix(PREFIX).lower().replace(BETWEEN, "."))
    return PREFIX + near.replace(".", BETWEEN).upper() if near else None


def _typo_of(variable: str, known: list[str]) -> str | None:
    names = [name.removeprefix(PREFIX) for name in known]
    near = most_similar(variable.removeprefix(PREFIX), names, TYPO_SIMILARITY_MIN)
    return PREFIX + near if near else None
