"""ApiRequest: one HTTP request, and its parameters as a struct."""

from __future__ import annotations

import asyncio
import datetime
import re
import types
import typing
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, TypeVar
from urllib.parse import parse_qsl

import msgspec

from frazil.errors import Malformed, TooLarge
from frazil.httpd import ClientGone, HttpError, Receive, Scope
from frazil.model import Clock
from frazil.query import TimeRange

BODY_TIMEOUT_S = 30.0
"""From the headers of a request to the end of its body."""
FIELDS_MAX = 200
"""Parameters in a query string."""
EARLIEST = datetime.datetime(1900, 1, 1, tzinfo=datetime.UTC)
LATEST = datetime.datetime(2600, 1, 1, tzinfo=datetime.UTC)
"""Times outside are clamped to these; no record is older or newer."""

UNIONS = (types.UnionType, typing.Union)

_AGO = re.compile(r"(\d{1,9})(s|m|h|d|w)")
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}

T = TypeVar("T", bound=msgspec.Struct)


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiRequest:
    """A request whose body is not read yet. Owned by the event loop."""

    method: str
    path: str
    raw_path: str
    """The path with its percent signs: a name may hold a slash."""
    query: str
    headers: dict[str, str]
    receive: Receive
    offers_websocket: bool = False

    @classmethod
    def of(cls, scope: Scope, receive: Receive) -> ApiRequest:
        headers = {
            name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]
        }
        return cls(
            method=scope["method"],
            path=scope["path"],
            raw_path=scope["raw_path"].decode("latin-1"),
            query=scope["query_string"].decode("latin-1"),
            headers=headers,
            receive=receive,
            offers_websocket=scope.get("websocket") is not None,
        )

    async def body(self, bytes_max: int, setting: str = "body_bytes_max") -> bytes:
        """Read the whole body. `TooLarge` above the limit, 408 after `BODY_TIMEOUT_S`."""
        try:
            async with asyncio.timeout(BODY_TIMEOUT_S):
                return await self._read(bytes_max, setting)
        except TimeoutError:
            raise HttpError(
                HTTPStatus.REQUEST_TIMEOUT,
                f"the body did not arrive within {BODY_TIMEOUT_S:g} s; send it at once",
            ) from None

    async def next_bytes(self) -> tuple[bytes, bool]:
        """Return the next bytes of the body, and whether they are the last. 408 if none arrive
        within `BODY_TIMEOUT_S`, `ClientGone` if the client disconnects."""
        try:
            async with asyncio.timeout(BODY_TIMEOUT_S):
                message = await self.receive()
        except TimeoutError:
            raise HttpError(
                HTTPStatus.REQUEST_TIMEOUT,
                f"no bytes of the body arrived within {BODY_TIMEOUT_S:g} s; send it again",
            ) from None
        if message["type"] == "http.disconnect":
            raise ClientGone
        return message["body"], not message["more_body"]

    async def _read(self, bytes_max: int, setting: str) -> bytes:
        body = bytearray()
        is_over = False
        while not is_over:
            message = await self.receive()
            if message["type"] == "http.disconnect":
                raise ClientGone
            body += message["body"]
            is_over = not message["more_body"]
            if len(body) > bytes_max:
                raise TooLarge(f"the body is above serve.{setting} ({bytes_max} bytes); send less")
        return bytes(body)

    async def gone(self) -> None:
        """Return when the client has disconnected. Call it after the body is read."""
        while (await self.receive())["type"] != "http.disconnect":
            continue


def struct_of_query(kind: type[T], query: str, path_values: Mapping[str, Any]) -> T:
    """Convert a query string and the values of the path. Repeated names become lists."""
    values: dict[str, Any] = dict(path_values)
    lists = _lists(kind)
    try:
        pairs = parse_qsl(query, keep_blank_values=True, max_num_fields=FIELDS_MAX, errors="strict")
    except ValueError as error:
        raise Malformed(f"the query string cannot be parsed: {error}") from None
    for name, value in pairs:
        if name in lists:
            values.setdefault(name, []).append(value)
        elif name in values:
            raise Malformed(f"{name} is given twice; give it once")
        else:
            values[name] = value
    params = _convert(kind, values)
    fields = dict(zip(kind.__struct_encode_fields__, kind.__struct_fields__, strict=True))
    for name in values:
        if getattr(params, fields[name]) is None:  # msgspec converts the text "null" to None
            raise Malformed(f"{name} is {values[name]!r}; give it a value, or leave it out")
    return params


def media_type(content_type: str) -> str:
    """Return a content type without its parameters."""
    return content_type.partition(";")[0].strip().lower()


def check_content_type(content_type: str, known: Sequence[str]) -> None:
    """415 unless a body has one of these types."""
    if media_type(content_type) not in known:
        raise HttpError(
            HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
            f"Content-Type is {content_type!r}; send {' or '.join(known)}",
        )


def struct_of_json(kind: type[T], body: bytes, content_type: str) -> T:
    """Decode a JSON body."""
    check_content_type(content_type, ("application/json",))
    try:
        return msgspec.json.decode(body, type=kind)
    except msgspec.ValidationError as error:
        raise Malformed(_message(kind, str(error))) from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise Malformed(f"the body is not JSON: {error}") from None


def _convert(kind: type[T], values: dict[str, Any]) -> T:
    """Numbers and booleans are text in a query string, hence not strict."""
    try:
        return msgspec.convert(values, kind, strict=False)
    except msgspec.ValidationError as error:
        raise Malformed(_message(kind, str(error))) from None


def _message(kind: type[msgspec.Struct], message: str) -> str:
    """Add the allowed values or the description of the field to an error of msgspec."""
    text = f"{message[:1].lower()}{message[1:]}"
    field = re.search(r"at `\$\.(\w+)`", message)
    if field is not None and "enum" in message:
        choices = ", ".join(map(str, _choices(typing.get_type_hints(kind)[field[1]])))
        return f"{text}; choose one of: {choices}"
    if "field" in message:
        return f"{text}; known fields: {', '.join(kind.__struct_encode_fields__) or 'none'}"
    description = None if field is None else _description(kind, field[1])
    return text if description is None else f"{text}; expected: {description}"


def _description(kind: type[msgspec.Struct], field: str) -> str | None:
    hint = typing.get_type_hints(kind, include_extras=True).get(field)
    metas = [meta for meta in getattr(hint, "__metadata__", ()) if isinstance(meta, msgspec.Meta)]
    return next((meta.description for meta in reversed(metas) if meta.description), None)


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
    """Parse the time range of a request."""
    now = wall_time(clock)
    return TimeRange(
        since=None if since is None else timestamp_of(since, "since", now),
        until=None if until is None else timestamp_of(until, "until", now),
    )


def wall_time(clock: Clock) -> datetime.datetime:
    return datetime.datetime.fromtimestamp(clock.wall_ms() / 1000, datetime.UTC)


def age_or_timestamp(text: str, name: str, clock: Clock) -> datetime.datetime | datetime.timedelta:
    """Parse a time, or an age as a `timedelta`."""
    ago = _AGO.fullmatch(text)
    timestamp = timestamp_of(text, name, wall_time(clock))
    if ago is None or timestamp == EARLIEST:
        return timestamp
    return datetime.timedelta(**{_UNITS[ago[2]]: int(ago[1])})


def timestamp_of(text: str, name: str, now: datetime.datetime) -> datetime.datetime:
    """Parse an RFC 3339 time or an age: 90s, 15m, 6h, 7d, 2w."""
    ago = _AGO.fullmatch(text)
    try:
        if ago is not None:
            return max(EARLIEST, now - datetime.timedelta(**{_UNITS[ago[2]]: int(ago[1])}))
        timestamp = datetime.datetime.fromisoformat(text)
        if timestamp.tzinfo is not None:
            return min(max(EARLIEST, timestamp), LATEST).astimezone(datetime.UTC)
    except OverflowError:
        return EARLIEST  # before year 1
    except ValueError:
        pass
    raise Malformed(
        f"{name} is {text!r}; write a time with a zone, such as 2026-11-16T10:00:00Z, or an age, "
        "such as 90s, 15m, 6h, 7d"
    )


def pairs_of(texts: tuple[str, ...], name: str) -> dict[str, list[str]]:
    """Parse filters of the form `name=value`. A repeated name matches any of its values."""
    pairs: dict[str, list[str]] = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals or not key:
            raise Malformed(f"{name} is {text!r}; write name=value, such as service_name=checkout")
        pairs.setdefault(key, []).append(value)
    return pairs


def seconds_of(text: str, name: str) -> datetime.timedelta:
    """Parse a duration: 90s, 15m, 6h, 7d, 2w."""
    match = _AGO.fullmatch(text)
    if match is None or int(match[1]) == 0:
        raise Malformed(f"{name} is {text!r}; write 10s, 5m, 1h or 1d")
    try:
        return datetime.timedelta(**{_UNITS[match[2]]: int(match[1])})
    except OverflowError:
        raise Malformed(f"{name} is {text!r}; that is too long") from None
