"""ApiRequest: what somebody asks, and the values in it as a struct."""

from __future__ import annotations

import asyncio
import datetime
import re
import types
import typing
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, TypeVar
from urllib.parse import parse_qsl

import msgspec

from frazil.errors import Malformed, TooLarge
from frazil.httpd import ClientGone, HttpError, Receive, Scope
from frazil.model import Clock
from frazil.query import TimeRange
from frazil.serve.http.field_docs import comments_of

BODY_TIMEOUT_S = 30.0
"""From a request's headers to the end of its body."""
FIELDS_MAX = 200
"""Of a query string."""
EARLIEST = datetime.datetime(1900, 1, 1, tzinfo=datetime.UTC)
LATEST = datetime.datetime(2600, 1, 1, tzinfo=datetime.UTC)
"""No record is from before or after; a time that is stands for these."""

UNIONS = (types.UnionType, typing.Union)

_AGO = re.compile(r"(\d{1,9})(s|m|h|d|w)")
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}

T = TypeVar("T", bound=msgspec.Struct)


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiRequest:
    """A request, before its body is read. Belongs to the event loop."""

    method: str
    path: str
    query: str
    headers: dict[str, str]
    receive: Receive

    @classmethod
    def of(cls, scope: Scope, receive: Receive) -> ApiRequest:
        headers = {
            name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]
        }
        return cls(
            method=scope["method"],
            path=scope["path"],
            query=scope["query_string"].decode("latin-1"),
            headers=headers,
            receive=receive,
        )

    async def body(self, bytes_max: int) -> bytes:
        """The whole body, within the limit and in time."""
        try:
            async with asyncio.timeout(BODY_TIMEOUT_S):
                return await self._read(bytes_max)
        except TimeoutError:
            raise HttpError(
                HTTPStatus.REQUEST_TIMEOUT,
                f"the body did not come within {BODY_TIMEOUT_S:g} s; send it at once",
            ) from None

    async def _read(self, bytes_max: int) -> bytes:
        body = bytearray()
        is_over = False
        while not is_over:
            message = await self.receive()
            if message["type"] == "http.disconnect":
                raise ClientGone
            body += message["body"]
            is_over = not message["more_body"]
            if len(body) > bytes_max:
                raise TooLarge(
                    f"the body is above serve.body_bytes_max ({bytes_max} bytes); send less"
                )
        return bytes(body)

    async def gone(self) -> None:
        """Returns when the client has left. To be called once the body is read."""
        while (await self.receive())["type"] != "http.disconnect":
            continue


def struct_of_query(kind: type[T], query: str, named: Mapping[str, Any]) -> T:
    """The values of a query string, and those named elsewhere, as in the path, as a struct. Lists
    come by repetition."""
    given: dict[str, Any] = dict(named)
    lists = _lists(kind)
    try:
        pairs = parse_qsl(query, keep_blank_values=True, max_num_fields=FIELDS_MAX, errors="strict")
    except ValueError as error:
        raise Malformed(f"the query string cannot be read: {error}") from None
    for name, value in pairs:
        if name in lists:
            given.setdefault(name, []).append(value)
        elif name in given:
            raise Malformed(f"{name} is given twice; give it once")
        else:
            given[name] = value
    found = _converted(kind, given)
    for name in given:
        if getattr(found, name) is None:  # it says null, which is nothing that one can ask for
            raise Malformed(f"{name} is {given[name]!r}; give it a value, or leave it out")
    return found


def struct_of_json(kind: type[T], body: bytes, content_type: str) -> T:
    """The values of a body in JSON as a struct."""
    if content_type.partition(";")[0].strip().lower() != "application/json":
        raise HttpError(
            HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
            f"Content-Type is {content_type!r}; send application/json",
        )
    try:
        return msgspec.json.decode(body, type=kind)
    except msgspec.ValidationError as error:
        raise Malformed(_words(kind, str(error))) from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise Malformed(f"the body is not JSON: {error}") from None


def _converted(kind: type[T], given: dict[str, Any]) -> T:
    """Numbers and truth are text in a query string."""
    try:
        return msgspec.convert(given, kind, strict=False)
    except msgspec.ValidationError as error:
        raise Malformed(_words(kind, str(error))) from None


def _words(kind: type[msgspec.Struct], message: str) -> str:
    """What msgspec says, and what would be right."""
    said = f"{message[:1].lower()}{message[1:]}"
    named = re.search(r"at `\$\.(\w+)`", message)
    if named is not None and "enum" in message:
        choices = ", ".join(map(str, _choices(typing.get_type_hints(kind)[named[1]])))
        return f"{said}; it is one of: {choices}"
    if "field" in message:
        return f"{said}; known here: {', '.join(kind.__struct_fields__) or 'nothing'}"
    comment = None if named is None else comments_of(kind).get(named[1])
    return said if comment is None else f"{said}; it is: {comment}"


def _choices(hint: Any) -> list[Any]:
    if typing.get_origin(hint) in UNIONS:
        return [choice for each in typing.get_args(hint) for choice in _choices(each)]
    return list(typing.get_args(hint)) if typing.get_origin(hint) is typing.Literal else []


def _lists(kind: type[msgspec.Struct]) -> frozenset[str]:
    hints = typing.get_type_hints(kind)
    return frozenset(name for name, hint in hints.items() if _is_list(hint))


def _is_list(hint: Any) -> bool:
    if typing.get_origin(hint) in UNIONS:
        return any(_is_list(each) for each in typing.get_args(hint))
    return typing.get_origin(hint) in (list, tuple)


def range_of(since: str | None, until: str | None, clock: Clock) -> TimeRange:
    """A stretch of time, as requests name it."""
    now = moment_now(clock)
    return TimeRange(
        since=None if since is None else moment_of(since, "since", now),
        until=None if until is None else moment_of(until, "until", now),
    )


def moment_now(clock: Clock) -> datetime.datetime:
    return datetime.datetime.fromtimestamp(clock.wall_ms() / 1000, datetime.UTC)


def ago_or_moment(text: str, name: str, clock: Clock) -> datetime.datetime | datetime.timedelta:
    """A time, or how long ago it was, as it was written."""
    ago = _AGO.fullmatch(text)
    moment = moment_of(text, name, moment_now(clock))
    if ago is None or moment == EARLIEST:
        return moment
    return datetime.timedelta(**{_UNITS[ago[2]]: int(ago[1])})


def moment_of(text: str, name: str, now: datetime.datetime) -> datetime.datetime:
    """A time in RFC 3339, or how long ago it was: 90s, 15m, 6h, 7d, 2w."""
    ago = _AGO.fullmatch(text)
    try:
        if ago is not None:
            return max(EARLIEST, now - datetime.timedelta(**{_UNITS[ago[2]]: int(ago[1])}))
        moment = datetime.datetime.fromisoformat(text)
        if moment.tzinfo is not None:
            return min(max(EARLIEST, moment), LATEST).astimezone(datetime.UTC)
    except OverflowError:
        return EARLIEST  # so long ago that there was no calendar
    except ValueError:
        pass
    raise Malformed(
        f"{name} is {text!r}; write a time with its zone, as 2026-11-16T10:00:00Z, or how long ago "
        "it was, as 90s, 15m, 6h, 7d"
    )


def pairs_of(texts: tuple[str, ...], name: str) -> dict[str, list[str]]:
    """Filters, each written as `name=value`. A name that comes several times may have any of its
    values."""
    pairs: dict[str, list[str]] = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals or not key:
            raise Malformed(f"{name} is {text!r}; write name=value, as in service_name=checkout")
        pairs.setdefault(key, []).append(value)
    return pairs


def seconds_of(text: str, name: str) -> datetime.timedelta:
    """A stretch of time: 90s, 15m, 6h, 7d, 2w."""
    found = _AGO.fullmatch(text)
    if found is None or int(found[1]) == 0:
        raise Malformed(f"{name} is {text!r}; write 10s, 5m, 1h or 1d")
    try:
        return datetime.timedelta(**{_UNITS[found[2]]: int(found[1])})
    except OverflowError:
        raise Malformed(f"{name} is {text!r}, which is too long") from None
