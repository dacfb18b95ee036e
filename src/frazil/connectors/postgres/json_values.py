"""Values of Postgres, as texts, into JSON: as Debezium writes them without schemas, decimals and
times as texts (`decimal.handling.mode=string`, `time.precision.mode=isostring`).

    boolean                          true, false
    smallint, integer, bigint, oid   number
    real, double precision           number; "NaN", "Infinity" and "-Infinity" as text
    numeric                          text, all digits; also "NaN"
    bytea                            base64
    date, time, timestamp            ISO 8601; those with a zone in UTC, with Z, in microseconds
    arrays                           list of their values; NULL is null
    interval                         ISO 8601, with all its parts: P0Y0M1DT2H0M0S
    all others                       their text: json, uuid, enums, ranges, addresses

The sessions whose texts are read have `SESSION_SETTINGS`.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import msgspec

from frazil.errors import Malformed

SESSION_SETTINGS: Mapping[str, str] = {
    "datestyle": "ISO",
    "intervalstyle": "iso_8601",
    "timezone": "UTC",
    "bytea_output": "hex",
    "extra_float_digits": "1",
    "xmlbinary": "base64",
}

ToJson = Callable[[bytes], bytes]
"""A value's text to JSON."""

BYTEA_PREFIX = b"\\x"
SPECIAL_FLOATS = frozenset({b"NaN", b"Infinity", b"-Infinity"})
TIMES = re.compile(rb"(\d+-\d\d-\d\d) (\d\d:\d\d:\d\d(?:\.\d+)?)(\+00)?( BC)?")
DATES = re.compile(rb"(\d+-\d\d-\d\d)( BC)?")
ZONED = re.compile(rb"(\d\d):(\d\d):(\d\d(?:\.\d+)?)([+-])(\d\d)(?::(\d\d))?(?::(\d\d))?")
NUMBER = rb"(-?[\d.]+)"
INTERVAL = re.compile(rb"P(?:%bY)?(?:%bM)?(?:%bD)?(?:T(?:%bH)?(?:%bM)?(?:%bS)?)?" % ((NUMBER,) * 6))
DAY_S = 86_400
DEPTH_MAX = 6
"""Dimensions of an array in Postgres."""


@dataclass(frozen=True, slots=True)
class PostgresType:
    """A type of the catalog, of which domains and arrays are told by what they are made of."""

    oid: int
    name: str
    element_oid: int = 0
    """For an array, the type of its values."""
    base_oid: int = 0
    """For a domain, the type below it."""
    delimiter: str = ","


def json_text(value: bytes) -> bytes:
    try:
        return msgspec.json.encode(value.decode())
    except UnicodeDecodeError as error:
        raise Malformed(f"a value of Postgres is not UTF-8: {error.reason}") from None


def _boolean(value: bytes) -> bytes:
    return b"true" if value == b"t" else b"false"


def _number(value: bytes) -> bytes:
    return value


def _quoted(value: bytes) -> bytes:
    return b'"%b"' % value


def _float(value: bytes) -> bytes:
    return _quoted(value) if value in SPECIAL_FLOATS else value


def _bytes(value: bytes) -> bytes:
    if not value.startswith(BYTEA_PREFIX):
        raise Malformed("a bytea does not begin with \\x: bytea_output is not hex")
    return _quoted(base64.b64encode(bytes.fromhex(value[2:].decode())))


def _iso_year(day: bytes, *, is_before_christ: bool) -> bytes:
    """Return a date in ISO 8601, which has a year 0 and signs years of other than 4 digits."""
    year, month, date = day.split(b"-")
    if not is_before_christ:
        return day if len(year) == 4 else b"+%b" % day
    astronomical = 1 - int(year)
    sign = b"-" if astronomical else b""
    return b"%b%04d-%b-%b" % (sign, -astronomical, month, date)


def _date(value: bytes) -> bytes:
    found = DATES.fullmatch(value)
    if found is None:  # infinity, -infinity
        return _quoted(value)
    day, before_christ = found.groups()
    return _quoted(_iso_year(day, is_before_christ=before_christ is not None))


def _timestamp(value: bytes) -> bytes:
    found = TIMES.fullmatch(value)
    if found is None:
        return _quoted(value)
    day, time, zone, before_christ = found.groups()
    day = _iso_year(day, is_before_christ=before_christ is not None)
    if zone:
        whole, _, fraction = time.partition(b".")
        return b'"%bT%b.%bZ"' % (day, whole, fraction.ljust(6, b"0"))
    return b'"%bT%b"' % (day, time)


def _time_with_zone(value: bytes) -> bytes:
    """Return a time of day in UTC."""
    found = ZONED.fullmatch(value)
    if found is None:
        raise Malformed(f"{value!r} is no time with a time zone")
    hours, minutes, seconds, sign, *zone = found.groups()
    away = sum(int(part or 0) * unit for part, unit in zip(zone, (3600, 60, 1), strict=True))
    whole, point, fraction = seconds.partition(b".")
    at = int(hours) * 3600 + int(minutes) * 60 + int(whole)
    at = (at + (away if sign == b"-" else -away)) % DAY_S
    text = b"%02d:%02d:%02d" % (at // 3600, at // 60 % 60, at % 60)
    return _quoted(text + point + fraction + b"Z")


def _interval(value: bytes) -> bytes:
    """Return an interval with all its parts, also those that are 0."""
    found = INTERVAL.fullmatch(value)
    if found is None:
        return _quoted(value)
    return b'"P%bY%bM%bDT%bH%bM%bS"' % tuple(part or b"0" for part in found.groups())


BUILT_IN: Mapping[int, ToJson] = {
    16: _boolean,
    17: _bytes,
    20: _number,
    21: _number,
    23: _number,
    26: _number,
    700: _float,
    701: _float,
    1700: _quoted,
    1082: _date,
    1083: _quoted,
    1114: _timestamp,
    1184: _timestamp,
    1186: _interval,
    1266: _time_with_zone,
    2950: _quoted,
}
"""Type to converter. Types that are not here are written as their text."""
BUILT_IN_ARRAYS: Mapping[int, int] = {
    1000: 16,
    1001: 17,
    1016: 20,
    1005: 21,
    1007: 23,
    1028: 26,
    1021: 700,
    1022: 701,
    1231: 1700,
    1182: 1082,
    1183: 1083,
    1115: 1114,
    1185: 1184,
    1187: 1186,
    1270: 1266,
    2951: 2950,
    1009: 25,
    1015: 1043,
    1014: 1042,
    199: 114,
    3807: 3802,
}


def converter(oid: int, types: Mapping[int, PostgresType]) -> ToJson:
    """Return what turns values of a type into JSON."""
    found = BUILT_IN.get(oid)
    if found is not None:
        return found
    own = types.get(oid)
    if own is not None and own.base_oid:
        return converter(own.base_oid, types)
    element = BUILT_IN_ARRAYS.get(oid) or (own.element_oid if own is not None else 0)
    if element:
        return _array(converter(element, types), (own.delimiter if own else ",").encode())
    return json_text


def _array(element: ToJson, delimiter: bytes) -> ToJson:
    quoted = rb'"(?:[^"\\]|\\.)*"'
    plain = rb'[^{}"\\%b]+' % re.escape(delimiter)
    token = re.compile(rb"([{}]|%b)|%b|%b" % (re.escape(delimiter), quoted, plain), re.DOTALL)

    def to_json(value: bytes) -> bytes:
        # Bounds other than 1 are told first, as in [0:1]={1,2}; JSON has none.
        at = value.find(b"=") + 1 if value.startswith(b"[") else 0
        parts: list[bytes] = []
        depth, before = 0, b""
        while at < len(value):
            found = token.match(value, at)
            if found is None:
                break
            text, at = found[0], found.end()
            mark = found[1] or b"value"
            if before not in MAY_FOLLOW[b"," if mark == delimiter else mark]:
                break
            if mark == b"value":
                parts.append(_array_value(text, element))
            else:
                depth += (mark == b"{") - (mark == b"}")
                parts.append(TOKENS.get(mark, b","))
            before = b"," if mark == delimiter else mark
            if depth == 0 or depth > DEPTH_MAX:
                break
        if depth or at < len(value) or before != b"}":
            raise Malformed(f"{value[:80]!r} is no array of Postgres")
        return b"".join(parts)

    return to_json


TOKENS: Mapping[bytes, bytes] = {b"{": b"[", b"}": b"]"}
MAY_FOLLOW: Mapping[bytes, frozenset[bytes]] = {
    b"{": frozenset({b"", b"{", b","}),
    b"}": frozenset({b"{", b"}", b"value"}),
    b",": frozenset({b"}", b"value"}),
    b"value": frozenset({b"{", b","}),
}
"""Which token may come after which in an array."""


def _array_value(text: bytes, element: ToJson) -> bytes:
    if text.startswith(b'"'):
        return element(re.sub(rb"\\(.)", rb"\1", text[1:-1], flags=re.DOTALL))
    return b"null" if text.upper() == b"NULL" else element(text)
