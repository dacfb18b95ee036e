"""Functions of templates, by the names that Loki documents."""

from __future__ import annotations

import base64
import binascii
import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote_plus, unquote_plus

from frazil.errors import Malformed
from frazil.languages.logql.go_times import TemplateTime, format_go_time, parse_go_time
from frazil.languages.logql.regex import compiled_regex, expand_groups
from frazil.languages.logql.units import size_bytes, value_duration_s

TEXT_MAX = 1 << 20
"""Characters of a text that a function makes."""

TemplateValue = str | int | float | bool | TemplateTime


class TemplateFailure(Exception):
    """A function cannot use its arguments; the line gets an error, the query goes on."""


@dataclass(frozen=True, slots=True)
class TemplateFunction:
    call: Callable[..., TemplateValue]
    least: int
    most: int


def shown_text(value: TemplateValue) -> str:
    """A value as Go prints it."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, TemplateTime):
        return value.shown()
    return str(value) if isinstance(value, int) else number_text(value)


def number_text(value: float) -> str:
    """A float as Go's `%v`."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    if value == 0:
        return "0"
    text = repr(value)
    exponent = math.floor(math.log10(abs(value)))
    if -5 < exponent < 21:
        return str(int(value)) if value.is_integer() else _plain(text)
    mantissa, _, power = text.partition("e")
    return f"{mantissa.removesuffix('.0')}e{'+' if int(power) >= 0 else '-'}{abs(int(power)):02}"


def _plain(text: str) -> str:
    """Write `1e-05` without an exponent."""
    if "e" not in text:
        return text
    mantissa, _, power = text.partition("e")
    digits = len(mantissa.partition(".")[2]) - int(power)
    return f"{float(text):.{digits}f}"


def is_true(value: TemplateValue) -> bool:
    """Whether Go's `if` takes it for true."""
    return True if isinstance(value, TemplateTime) else bool(value)


def _text(value: TemplateValue) -> str:
    if not isinstance(value, str):
        raise TemplateFailure(f"{shown_text(value)} is no text")
    return value


def _whole(value: TemplateValue) -> int:
    """A value as a whole number; a text that is none is 0."""
    if isinstance(value, TemplateTime):
        return value.ns
    try:
        number = int(value)
    except (ValueError, OverflowError):
        as_float = _float(value)
        number = math.trunc(as_float) if math.isfinite(as_float) else 0
    return number if abs(number) < 1 << 63 else 0


def _float(value: TemplateValue) -> float:
    if isinstance(value, TemplateTime):
        return float(value.ns)
    try:
        return float(value)
    except ValueError:
        return 0.0


def _bounded(text: str) -> str:
    if len(text) > TEXT_MAX:
        raise TemplateFailure(f"a text has more than {TEXT_MAX} characters")
    return text


def _repeat(count: TemplateValue, text: TemplateValue) -> str:
    times = max(0, _whole(count))
    if times * len(_text(text)) > TEXT_MAX:
        raise TemplateFailure(f"a text has more than {TEXT_MAX} characters")
    return _text(text) * times


def _replace(old: TemplateValue, new: TemplateValue, text: TemplateValue) -> str:
    return _bounded(_text(text).replace(_text(old), _text(new)))


def _replace_first(
    text: TemplateValue, old: TemplateValue, new: TemplateValue, count: TemplateValue
) -> str:
    return _bounded(_text(text).replace(_text(old), _text(new), _whole(count)))


def _truncated(count: TemplateValue, text: TemplateValue) -> str:
    """The first characters, or if negative, the last."""
    size = _whole(count)
    whole = _text(text)
    if size >= 0:
        return whole[:size]
    return whole[size:] if -size < len(whole) else whole


def _part(begin: TemplateValue, end: TemplateValue, text: TemplateValue) -> str:
    first, last, whole = _whole(begin), _whole(end), _text(text)
    if first < 0:
        return whole[:last]
    return whole[first:] if last < 0 or last > len(whole) else whole[first:last]


def _align(count: TemplateValue, text: TemplateValue, *, is_left: bool) -> str:
    size, whole = _whole(count), _text(text)
    if not 0 <= size <= TEXT_MAX:
        return whole
    if is_left:
        return whole[:size].ljust(size)
    return whole[len(whole) - size :] if len(whole) > size else whole.rjust(size)


def _indented(count: TemplateValue, text: TemplateValue) -> str:
    pad = _repeat(count, " ")
    return _bounded(pad + _text(text).replace("\n", "\n" + pad))


def _regex_replaced(pattern: TemplateValue, text: TemplateValue, new: TemplateValue) -> str:
    template = _text(new)
    replaced = _regex(pattern).sub(lambda match: expand_groups(template, match), _text(text))
    return _bounded(replaced)


def _regex_literal(pattern: TemplateValue, text: TemplateValue, new: TemplateValue) -> str:
    literal = _text(new)
    return _bounded(_regex(pattern).sub(lambda _: literal, _text(text)))


def _regex_count(pattern: TemplateValue, text: TemplateValue) -> int:
    return sum(1 for _ in _regex(pattern).finditer(_text(text)))


def _regex(pattern: TemplateValue) -> Any:
    try:
        return compiled_regex(_text(pattern))
    except Malformed as error:
        raise TemplateFailure(str(error)) from None


def _decoded(text: TemplateValue) -> str:
    try:
        return base64.b64decode(_text(text), validate=True).decode(errors="replace")
    except (binascii.Error, ValueError) as error:
        raise TemplateFailure(f"this is not base64: {error}") from None


def _divided(first: TemplateValue, second: TemplateValue) -> int:
    left, right = _whole(first), _whole(second)
    if right == 0:
        raise TemplateFailure("division by 0")
    quotient = abs(left) // abs(right)
    return quotient if (left < 0) == (right < 0) else -quotient


def _remainder(first: TemplateValue, second: TemplateValue) -> int:
    left, right = _whole(first), _whole(second)
    if right == 0:
        raise TemplateFailure("division by 0")
    return left - right * _divided(left, right)


def _divided_float(first: TemplateValue, *others: TemplateValue) -> float:
    result = _float(first)
    for other in others:
        divisor = _float(other)
        result = result / divisor if divisor else math.copysign(math.inf, result)
    return result


def _rounded(value: TemplateValue, places: TemplateValue = 0) -> float:
    scale = 10.0 ** min(15, max(0, _whole(places)))
    number = _float(value) * scale
    return math.copysign(math.floor(abs(number) + 0.5), number) / scale


def _size(text: TemplateValue) -> float:
    size = size_bytes(_text(text))
    if size is None:
        raise TemplateFailure(f"{text} is no size")
    return size


def _seconds(text: TemplateValue) -> float:
    seconds = value_duration_s(_text(text))
    if seconds is None:
        raise TemplateFailure(f"{text} is no duration")
    return seconds


def _date(layout: TemplateValue, time: TemplateValue) -> str:
    moment = time if isinstance(time, TemplateTime) else TemplateTime(_whole(time) * 10**9)
    return format_go_time(_text(layout), moment)


def _to_date(layout: TemplateValue, *zone_and_text: TemplateValue) -> TemplateTime:
    moment = parse_go_time(_text(layout), _text(zone_and_text[-1]))
    if moment is None:
        raise TemplateFailure(f"{zone_and_text[-1]} does not have the layout {layout}")
    return moment


def _unix_to_time(text: TemplateValue) -> TemplateTime:
    """Days, seconds, milliseconds, microseconds or nanoseconds, by the number of digits."""
    digits = len(_text(text))
    scales = {5: 86_400 * 10**9, 10: 10**9, 13: 10**6, 16: 10**3, 19: 1}
    if digits not in scales:
        raise TemplateFailure(f"{text} is no time since 1970")
    return TemplateTime(_whole(text) * scales[digits])


def _epoch(scale: int) -> Callable[[TemplateValue], str]:
    def call(time: TemplateValue) -> str:
        if not isinstance(time, TemplateTime):
            raise TemplateFailure(f"{shown_text(time)} is no time")
        return str(time.ns // scale)

    return call


_FORMAT = re.compile(r"%([-+ 0#]*+\d{0,3}(?:\.\d{1,2})?)([vsdfgqxtTw%])")


def _printed(template: TemplateValue, *values: TemplateValue) -> str:
    """`printf` with %v %s %d %f %g %q %x %t."""
    left = list(values)

    def one(found: re.Match[str]) -> str:
        flags, verb = found[1], found[2]
        if verb == "%":
            return "%"
        if not left:
            return f"%!{verb}(MISSING)"
        value = left.pop(0)
        if verb in "dx":
            return f"%{flags}{verb}" % _whole(value)
        if verb in "fg":
            return f"%{flags}{verb}" % _float(value)
        if verb == "q":
            return '"' + shown_text(value).replace("\\", "\\\\").replace('"', '\\"') + '"'
        return f"%{flags}s" % shown_text(value)

    return _bounded(_FORMAT.sub(one, _text(template)))


def _equal(first: TemplateValue, *others: TemplateValue) -> bool:
    return any(type(first) is type(other) and first == other for other in others)


def _order(test: Callable[[Any, Any], bool]) -> Callable[..., bool]:
    def call(first: TemplateValue, second: TemplateValue) -> bool:
        if isinstance(first, str) != isinstance(second, str):
            raise TemplateFailure("a text and a number cannot be compared; use int or float64")
        return test(first, second)

    return call


def _and(first: TemplateValue, *others: TemplateValue) -> TemplateValue:
    return next(
        (value for value in (first, *others[:-1]) if not is_true(value)), (first, *others)[-1]
    )


def _or(first: TemplateValue, *others: TemplateValue) -> TemplateValue:
    return next((value for value in (first, *others[:-1]) if is_true(value)), (first, *others)[-1])


def _title(text: TemplateValue) -> str:
    return re.sub(r"(^|\s)(\S)", lambda match: match[1] + match[2].upper(), _text(text))


MANY = 16

_TEXT_FUNCTIONS: dict[str, tuple[Callable[..., TemplateValue], int, int]] = {
    "ToLower": (lambda s: _text(s).lower(), 1, 1),
    "lower": (lambda s: _text(s).lower(), 1, 1),
    "ToUpper": (lambda s: _text(s).upper(), 1, 1),
    "upper": (lambda s: _text(s).upper(), 1, 1),
    "title": (_title, 1, 1),
    "Replace": (_replace_first, 4, 4),
    "replace": (_replace, 3, 3),
    "Trim": (lambda s, chars: _text(s).strip(_text(chars)), 2, 2),
    "TrimLeft": (lambda s, chars: _text(s).lstrip(_text(chars)), 2, 2),
    "TrimRight": (lambda s, chars: _text(s).rstrip(_text(chars)), 2, 2),
    "TrimPrefix": (lambda s, prefix: _text(s).removeprefix(_text(prefix)), 2, 2),
    "TrimSuffix": (lambda s, suffix: _text(s).removesuffix(_text(suffix)), 2, 2),
    "TrimSpace": (lambda s: _text(s).strip(), 1, 1),
    "trim": (lambda s: _text(s).strip(), 1, 1),
    "trimAll": (lambda chars, s: _text(s).strip(_text(chars)), 2, 2),
    "trimPrefix": (lambda prefix, s: _text(s).removeprefix(_text(prefix)), 2, 2),
    "trimSuffix": (lambda suffix, s: _text(s).removesuffix(_text(suffix)), 2, 2),
    "trunc": (_truncated, 2, 2),
    "substr": (_part, 3, 3),
    "repeat": (_repeat, 2, 2),
    "indent": (_indented, 2, 2),
    "nindent": (lambda count, s: "\n" + _indented(count, s), 2, 2),
    "alignLeft": (lambda count, s: _align(count, s, is_left=True), 2, 2),
    "alignRight": (lambda count, s: _align(count, s, is_left=False), 2, 2),
    "contains": (lambda part, s: _text(part) in _text(s), 2, 2),
    "hasPrefix": (lambda prefix, s: _text(s).startswith(_text(prefix)), 2, 2),
    "hasSuffix": (lambda suffix, s: _text(s).endswith(_text(suffix)), 2, 2),
    "regexReplaceAll": (_regex_replaced, 3, 3),
    "regexReplaceAllLiteral": (_regex_literal, 3, 3),
    "count": (_regex_count, 2, 2),
    "urlencode": (lambda s: quote_plus(_text(s)), 1, 1),
    "urldecode": (lambda s: unquote_plus(_text(s)), 1, 1),
    "b64enc": (lambda s: base64.b64encode(_text(s).encode()).decode(), 1, 1),
    "b64dec": (_decoded, 1, 1),
    "default": (lambda d, value: value if is_true(value) else d, 2, 2),
    "print": (lambda *values: "".join(map(shown_text, values)), 0, MANY),
    "printf": (_printed, 1, MANY),
    "len": (lambda s: len(_text(s).encode()), 1, 1),
}
_NUMBER_FUNCTIONS: dict[str, tuple[Callable[..., TemplateValue], int, int]] = {
    "int": (_whole, 1, 1),
    "float64": (_float, 1, 1),
    "add": (lambda *values: sum(map(_whole, values)), 1, MANY),
    "sub": (lambda a, b: _whole(a) - _whole(b), 2, 2),
    "mul": (lambda *values: math.prod(map(_whole, values)), 1, MANY),
    "div": (_divided, 2, 2),
    "mod": (_remainder, 2, 2),
    "addf": (lambda *values: math.fsum(map(_float, values)), 1, MANY),
    "subf": (lambda a, *rest: _float(a) - math.fsum(map(_float, rest)), 2, MANY),
    "mulf": (lambda *values: math.prod(map(_float, values)), 1, MANY),
    "divf": (_divided_float, 2, MANY),
    "max": (lambda *values: max(map(_whole, values)), 1, MANY),
    "min": (lambda *values: min(map(_whole, values)), 1, MANY),
    "maxf": (lambda *values: max(map(_float, values)), 1, MANY),
    "minf": (lambda *values: min(map(_float, values)), 1, MANY),
    "ceil": (lambda value: float(math.ceil(_float(value))), 1, 1),
    "floor": (lambda value: float(math.floor(_float(value))), 1, 1),
    "round": (_rounded, 1, 2),
    "bytes": (_size, 1, 1),
    "duration": (_seconds, 1, 1),
    "duration_seconds": (_seconds, 1, 1),
    "date": (_date, 2, 2),
    "toDate": (_to_date, 2, 2),
    "toDateInZone": (_to_date, 3, 3),
    "unixToTime": (_unix_to_time, 1, 1),
    "unixEpoch": (_epoch(10**9), 1, 1),
    "unixEpochMillis": (_epoch(10**6), 1, 1),
    "unixEpochNanos": (_epoch(1), 1, 1),
    "and": (_and, 1, MANY),
    "or": (_or, 1, MANY),
    "not": (lambda value: not is_true(value), 1, 1),
    "eq": (_equal, 2, MANY),
    "ne": (lambda a, b: not _equal(a, b), 2, 2),
    "lt": (_order(lambda a, b: a < b), 2, 2),
    "le": (_order(lambda a, b: a <= b), 2, 2),
    "gt": (_order(lambda a, b: a > b), 2, 2),
    "ge": (_order(lambda a, b: a >= b), 2, 2),
}
FUNCTIONS = {
    name: TemplateFunction(call, least, most)
    for name, (call, least, most) in (_TEXT_FUNCTIONS | _NUMBER_FUNCTIONS).items()
}
