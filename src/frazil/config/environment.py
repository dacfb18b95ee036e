"""Settings from the environment: `FRAZIL_LOG__DISK_BYTES_MAX` is log.disk_bytes_max."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping

from frazil.config.settings import BETWEEN, PREFIX, settings
from frazil.config.sources import Origin, SettingValues, nearest

FILE_VARIABLE = "FRAZIL_CONFIG"
OTHER_VARIABLES = frozenset({FILE_VARIABLE, "FRAZIL_TOKEN", "FRAZIL_URL"})
"""Variables of ours that are no settings: clients read the last two."""
OF_KUBERNETES = re.compile(
    r"FRAZIL_(\w+_)?(SERVICE_(HOST|PORT(_\w+)?)|PORT_\d+_(TCP|UDP|SCTP)(_\w+)?)=.*"
    r"|FRAZIL_(\w+_)?PORT=(tcp|udp|sctp)://.*",
    re.DOTALL,
)
"""What a container finds in its environment when a service is called frazil."""
SLIP = 0.85
"""A variable that is so much like one of ours, of 1, is a slip, and not somebody else's."""


def take_environment(given: SettingValues, environ: Mapping[str, str]) -> None:
    """Take in what is set, and refuse what only looks so.

    In the name of a map's entry `__` is a dot and `_` a hyphen, as PyIceberg has it; names that
    cannot be written so come as JSON.
    """
    known = {setting.variable: setting.keys for setting in settings()}
    maps = {setting.variable + BETWEEN: setting for setting in settings()}
    maps = {name: setting for name, setting in maps.items() if setting.kind.base == "map"}
    for variable in sorted(name for name in environ if name.startswith(PREFIX)):
        text, origin = environ[variable], Origin(source="environment", name=variable)
        above = next((name for name in maps if variable.startswith(name)), None)
        if variable in known:
            given.take_text(known[variable], text, origin)
        elif above is not None:
            entry = variable.removeprefix(above).lower().replace(BETWEEN, ".").replace("_", "-")
            given.take_text((*maps[above].keys, entry), text, origin)
        elif variable not in OTHER_VARIABLES:
            _refuse_variable(given, variable, text, [*known, *sorted(OTHER_VARIABLES)])


def _refuse_variable(given: SettingValues, variable: str, text: str, known: list[str]) -> None:
    """Others may have variables that begin with our name, but none with `__` in it."""
    is_ours = BETWEEN in variable
    if not is_ours and OF_KUBERNETES.fullmatch(f"{variable}={text}"):
        return
    near = _near_variable(variable, known) if is_ours else _slip_of(variable, known)
    advice = f"; did you mean {near}?" if near else ""
    if is_ours or near:
        given.findings.append(f"environment variable {variable} is not a setting{advice}")


def _near_variable(variable: str, known: list[str]) -> str | None:
    """As for names in a file. Of a table the first setting: it shows how the name goes on."""
    inside = [name for name in known if name.startswith(variable + BETWEEN)]
    if inside:
        return inside[0]
    near = nearest(variable.removeprefix(PREFIX).lower().replace(BETWEEN, "."))
    return PREFIX + near.replace(".", BETWEEN).upper() if near else None


def _slip_of(variable: str, known: list[str]) -> str | None:
    names = [name.removeprefix(PREFIX) for name in known]
    close = difflib.get_close_matches(variable.removeprefix(PREFIX), names, n=1, cutoff=SLIP)
    return PREFIX + close[0] if close else None
