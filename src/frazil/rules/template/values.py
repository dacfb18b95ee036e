"""Values as Go prints them, and its printf."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from decimal import Decimal

from frazil.errors import Malformed

Value = str | float | int | bool | Mapping[str, str]

VERB = re.compile(r"%(?P<flags>[-+# 0]*)(?P<width>\d*)(?:\.(?P<precision>\d*))?(?P<verb>.?)", re.S)
WIDTH_MAX = 1000
"""Of printf: a template must not fill the memory."""
EXPONENT_MIN, EXPONENT_MAX = -4, 6
"""Outside of these, Go prints a float with an exponent."""


def text_of(value: Value) -> str:
    """Return what `{{ value }}` prints."""
    match value:
        case bool():
            return "true" if value else "false"
        case float():
            return float_text(value)
        case Mapping():
            return f"map[{' '.join(f'{name}:{value[name]}' for name in sorted(value))}]"
    return str(value)


def float_text(value: float) -> str:
    """Return the shortest text of a float: 1.5, 100000, 1e+06."""
    return special_text(value) or _digits_text(value, EXPONENT_MIN, EXPONENT_MAX)


def exponent_text(value: float) -> str:
    """Return the shortest text of a float with an exponent: 1e+00."""
    return special_text(value) or _digits_text(value, 0, 0)


def _digits_text(value: float, exponent_min: int, exponent_max: int) -> str:
    """Return the shortest text; with an exponent, unless that is from `exponent_min` up to
    `exponent_max`."""
    sign, digits, exponent = Decimal(repr(value)).normalize().as_tuple()
    assert isinstance(exponent, int)
    point = len(digits) - 1 + exponent
    text = "".join(map(str, digits))
    minus = "-" if sign else ""
    if value == 0:
        point = 0
    if exponent_min <= point < exponent_max:
        return f"{minus}{Decimal(int(text)).scaleb(exponent):f}"
    fraction = f".{text[1:]}" if len(text) > 1 else ""
    return f"{minus}{text[0]}{fraction}e{'-' if point < 0 else '+'}{abs(point):02d}"


def special_text(value: float) -> str | None:
    """Return the text of a float that is not finite, None of one that is."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    return None


def short_text(value: float) -> str:
    """Return a float with four digits, as `%.4g`."""
    return special_text(value) or f"{value:.4g}"


def printf(pattern: str, arguments: tuple[Value, ...]) -> str:
    """Format as Go does, the verbs that labels and numbers need."""
    parts: list[str] = []
    at = used = 0
    for match in VERB.finditer(pattern):
        parts.append(pattern[at : match.start()])
        at = match.end()
        if match["verb"] == "%":
            parts.append("%")
            continue
        if used >= len(arguments):
            parts.append(f"%!{match['verb'] or '(NOVERB)'}(MISSING)")
            continue
        parts.append(_verb(match, arguments[used]))
        used += 1
    parts.append(pattern[at:])
    if used < len(arguments):
        raise Malformed(
            f"printf {json.dumps(pattern)} has {used} verbs for {len(arguments)} values"
        )
    return "".join(parts)


def _verb(match: re.Match[str], value: Value) -> str:
    verb, flags = match["verb"], match["flags"]
    width = int(match["width"] or 0)
    precision = None if match["precision"] is None else int(match["precision"] or 0)
    if width > WIDTH_MAX or (precision or 0) > WIDTH_MAX:
        raise Malformed(f"printf: {match[0]} is wider than {WIDTH_MAX}")
    text = _formatted(verb, value, precision)
    if text is None:
        kind = {str: "string", float: "float64", int: "int", bool: "bool"}.get(type(value), "map")
        return f"%!{verb}({kind}={text_of(value)})"
    is_number = isinstance(value, float | int) and not isinstance(value, bool)
    if is_number and "+" in flags and not text.startswith(("-", "+")):
        text = f"+{text}"
    elif is_number and " " in flags and not text.startswith(("-", "+")):
        text = f" {text}"
    if "-" in flags:
        return text.ljust(width)
    if "0" in flags and is_number:
        return text.zfill(width)
    return text.rjust(width)


def _formatted(verb: str, value: Value, precision: int | None) -> str | None:
    """Return a value by a verb, None if the verb is not for it."""
    if verb == "v" and precision is None:
        return text_of(value)
    if isinstance(value, bool):
        return text_of(value) if verb == "t" else None
    if isinstance(value, float):
        return _float(verb, value, precision)
    if isinstance(value, int):
        forms = {"d": "d", "x": "x", "X": "X", "o": "o", "b": "b", "c": "c"}
        return format(value, forms[verb]) if verb in forms else None
    if isinstance(value, str):
        cut = value if precision is None else value[:precision]
        match verb:
            case "s" | "v":
                return cut
            case "q":
                return json.dumps(cut, ensure_ascii=False)
            case "x":
                return cut.encode().hex()
        return None
    return text_of(value) if verb == "s" else None


def _float(verb: str, value: float, precision: int | None) -> str | None:
    if verb not in "feEgGvF":
        return None
    special = special_text(value)
    if special is not None:
        return special
    if verb in "gGv":
        return float_text(value) if precision is None else f"{value:.{precision}g}"
    return format(value, f".{6 if precision is None else precision}{verb}")
