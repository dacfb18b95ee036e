"""Functions of templates: Go's own and Prometheus'. Those that run a query are not supported."""

from __future__ import annotations

import ipaddress
import math
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from urllib.parse import quote_plus

import re2

from frazil.errors import Malformed
from frazil.rules.durations import parse_duration
from frazil.rules.template.values import Value, printf, short_text, special_text, text_of

LARGE = ("k", "M", "G", "T", "P", "E", "Z", "Y")
LARGE_1024 = ("ki", "Mi", "Gi", "Ti", "Pi", "Ei", "Zi", "Yi")
SMALL = ("m", "u", "n", "p", "f", "a", "z", "y")
GROUP = re.compile(r"\$(?:\{(\w+)\}|(\w+)|(\$))")
NEED_QUERIES = ("query", "first", "value", "label", "strvalue", "sortByLabel")
NOT_HERE = ("graphLink", "tableLink", "tmpl", "args", "safeHtml", "pathPrefix", "call", "js")

Function = Callable[..., Value]


def number_of(value: Value) -> float:
    """Return a number, also of a text. `Malformed` if it is none."""
    if isinstance(value, Mapping):
        raise Malformed("labels are not a number")
    try:
        return float(value)
    except ValueError:
        raise Malformed(f"{value!r} is not a number") from None


def _scaled(value: float, size: float, large: tuple[str, ...]) -> str:
    prefix = ""
    for name in large:
        if abs(value) < size:
            break
        prefix, value = name, value / size
    return f"{short_text(value)}{prefix}"


def _small(value: float) -> tuple[float, str]:
    prefix = ""
    for name in SMALL:
        if abs(value) >= 1:
            break
        prefix, value = name, value * 1000
    return value, prefix


def humanize(value: Value) -> str:
    """1234567 is 1.235M."""
    number = number_of(value)
    if number == 0 or not math.isfinite(number):
        return short_text(number)
    if abs(number) >= 1:
        return _scaled(number, 1000, LARGE)
    number, prefix = _small(number)
    return f"{short_text(number)}{prefix}"


def humanize_1024(value: Value) -> str:
    """1048576 is 1Mi."""
    number = number_of(value)
    if abs(number) <= 1 or not math.isfinite(number):
        return short_text(number)
    return _scaled(number, 1024, LARGE_1024)


def humanize_duration(value: Value) -> str:
    """3661 is 1h 1m 1s."""
    number = number_of(value)
    if not math.isfinite(number):
        return short_text(number)
    if number == 0:
        return "0s"
    if abs(number) < 1:
        number, prefix = _small(number)
        return f"{short_text(number)}{prefix}s"
    sign, number = ("-", -number) if number < 0 else ("", number)
    whole = int(number)
    days, hours, minutes = whole // 86400, whole // 3600 % 24, whole // 60 % 60
    if days:
        return f"{sign}{days}d {hours}h {minutes}m {whole % 60}s"
    if hours:
        return f"{sign}{hours}h {minutes}m {whole % 60}s"
    if minutes:
        return f"{sign}{minutes}m {whole % 60}s"
    return f"{sign}{short_text(number)}s"


def humanize_percentage(value: Value) -> str:
    """0.1234 is 12.34%."""
    return f"{short_text(number_of(value) * 100)}%"


def humanize_timestamp(value: Value) -> str:
    """Seconds since 1970 as a time, to the millisecond."""
    number = number_of(value)
    if special_text(number) is not None:
        return short_text(number)
    try:
        time = datetime.fromtimestamp(math.trunc(number * 1000) / 1000, UTC)
    except (ValueError, OverflowError, OSError):
        raise Malformed(f"{number:g} seconds since 1970 is no time") from None
    fraction = f".{time.microsecond:06d}".rstrip("0") if time.microsecond else ""
    return f"{time:%Y-%m-%d %H:%M:%S}{fraction} +0000 UTC"


def _pattern(text: Value) -> re2.Pattern:
    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(text_of(text), options)
    except re2.error as error:
        raise Malformed(f"{text!r} is not a regular expression: {error}") from None


def matches(pattern: Value, text: Value) -> bool:
    return _pattern(pattern).search(text_of(text)) is not None


def replace_all(pattern: Value, replacement: Value, text: Value) -> str:
    """Replace every match; `$1` and `${name}` are groups, `$$` is a dollar."""
    compiled = _pattern(pattern)

    def expand(match: re.Match[str]) -> str:
        def group(name: re.Match[str]) -> str:
            if name[3]:
                return "$"
            key = name[1] or name[2]
            try:
                return match[int(key) if key.isdecimal() else key] or ""
            except (IndexError, KeyError):
                return ""

        return GROUP.sub(group, text_of(replacement))

    return str(compiled.sub(expand, text_of(text)))


def strip_port(value: Value) -> str:
    text = text_of(value)
    host, colon, port = text.rpartition(":")
    if not colon or not port.isdecimal() or (":" in host and not host.startswith("[")):
        return text
    return host.strip("[]") if host.startswith("[") else host


def strip_domain(value: Value) -> str:
    text = text_of(value)
    host = strip_port(text)
    port = text[len(host) :] if text.startswith(host) else ""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return host.partition(".")[0] + port
    return text


def _title(value: Value) -> str:
    return re.sub(r"(^|\s)(\S)", lambda match: match[1] + match[2].upper(), text_of(value))


def _equals(first: Value, *others: Value) -> bool:
    if not others:
        raise Malformed("eq needs two values")
    return any(first == other for other in others)


def _compare(test: Callable[[float], bool]) -> Function:
    def compare(left: Value, right: Value) -> bool:
        if isinstance(left, str) and isinstance(right, str):
            return test((left > right) - (left < right))
        a, b = number_of(left), number_of(right)
        if math.isnan(a) or math.isnan(b):
            return False
        return test((a > b) - (a < b))

    return compare


def is_true(value: Value) -> bool:
    """Return what `if` takes for true: not false, not zero, not empty."""
    return bool(value)


def _and(first: Value, *others: Value) -> Value:
    for value in others:
        if not is_true(first):
            break
        first = value
    return first


def _or(first: Value, *others: Value) -> Value:
    for value in others:
        if is_true(first):
            break
        first = value
    return first


def _length(value: Value) -> int:
    if isinstance(value, str):
        return len(value.encode())
    if isinstance(value, Mapping):
        return len(value)
    raise Malformed("len is for texts and labels")


def _index(labels: Value, name: Value) -> str:
    if not isinstance(labels, Mapping):
        raise Malformed('index is for labels: index $labels "name"')
    return labels.get(text_of(name), "")


FUNCTIONS: dict[str, Function] = {
    "humanize": humanize,
    "humanize1024": humanize_1024,
    "humanizeDuration": humanize_duration,
    "humanizePercentage": humanize_percentage,
    "humanizeTimestamp": humanize_timestamp,
    "match": matches,
    "reReplaceAll": replace_all,
    "stripPort": strip_port,
    "stripDomain": strip_domain,
    "title": _title,
    "toUpper": lambda value: text_of(value).upper(),
    "toLower": lambda value: text_of(value).lower(),
    "parseDuration": lambda text: parse_duration(text_of(text)) / 1000,
    "urlQueryEscape": lambda text: quote_plus(text_of(text)),
    "urlquery": lambda text: quote_plus(text_of(text)),
    "printf": lambda pattern, *values: printf(text_of(pattern), values),
    "print": lambda *values: "".join(map(text_of, values)),
    "println": lambda *values: " ".join(map(text_of, values)) + "\n",
    "len": _length,
    "index": _index,
    "eq": _equals,
    "ne": lambda left, right: left != right,
    "lt": _compare(lambda order: order < 0),
    "le": _compare(lambda order: order <= 0),
    "gt": _compare(lambda order: order > 0),
    "ge": _compare(lambda order: order >= 0),
    "and": _and,
    "or": _or,
    "not": lambda value: not is_true(value),
}


def function_of(name: str) -> Function:
    """Return a function. `Malformed` says what to do if there is none."""
    if name in FUNCTIONS:
        return FUNCTIONS[name]
    if name in NEED_QUERIES:
        raise Malformed(
            f"the function {name} is not supported in templates: they run no queries; "
            "have the value in the rule's own query"
        )
    if name in NOT_HERE:
        raise Malformed(f"the function {name} is not supported in templates")
    raise Malformed(f"there is no function {name} in templates")
