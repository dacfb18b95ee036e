"""HttpSource: polls a URL, by cursor or by ETag.

With a cursor each response says where the next one begins: every record once. Without, a response
counts when its ETag or its content has changed: what was there only between two polls is missed.

    position   number of the response, ETag, digest of the content, cursor, as JSON
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Annotated, Literal
from urllib.parse import quote

import msgspec

from frazil.connectors.contract import KnownPosition, SourceBatch
from frazil.connectors.http.web_client import WebClient
from frazil.errors import Malformed, Unavailable
from frazil.log import Record
from frazil.model import NS_PER_MS, Clock, MiB

RESPONSE_BYTES_MAX = 8 * MiB
CURSOR_CHARS_MAX = 512
ETAG_CHARS_MAX = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpSourceOptions:
    """Options of TYPE http in CREATE SOURCE."""

    path: str = ""
    """Below the URL of the connection."""
    interval_ms: Annotated[int, msgspec.Meta(ge=100, le=86_400_000)] = 60_000
    records: str = ""
    """JSON pointer to the list of records, such as /items; empty: the whole document."""
    cursor: str = ""
    """JSON pointer to where the next response begins, such as /next; empty: there is none."""
    cursor_parameter: str = "cursor"
    """Of the URL, with the cursor as its value."""
    format: Literal["json", "ndjson"] = "json"

    def __post_init__(self) -> None:
        for name, pointer in (("RECORDS", self.records), ("CURSOR", self.cursor)):
            if pointer and not pointer.startswith("/"):
                raise Malformed(f"{name} is {pointer!r}; a JSON pointer begins with /")
        if self.format == "ndjson" and (self.records or self.cursor):
            raise Malformed("RECORDS and CURSOR are for FORMAT=json")


class HttpPosition(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Where to go on."""

    number: int = 0
    etag: str = ""
    digest: str = ""
    cursor: str | None = None


@dataclass(slots=True)
class HttpSource:
    """Implements `Source`."""

    options: HttpSourceOptions
    client: WebClient
    clock: Clock
    _at: HttpPosition = field(default_factory=HttpPosition)
    _next_ns: int = 0

    def open(self, known: Sequence[KnownPosition]) -> None:
        for each in known:
            self._at = msgspec.json.decode(each.position, type=HttpPosition)

    def poll(self, timeout_s: float) -> Sequence[SourceBatch]:
        wait_s = (self._next_ns - self.clock.monotonic_ns()) / NS_PER_MS / 1000
        if wait_s > 0:
            self.clock.sleep(min(wait_s, timeout_s))
            if wait_s > timeout_s:
                return ()
        self._next_ns = self.clock.monotonic_ns() + self.options.interval_ms * NS_PER_MS
        headers = {"Accept": "application/json"}
        if self._at.etag and not self.options.cursor:
            headers["If-None-Match"] = self._at.etag
        query = ""
        if self._at.cursor is not None:
            query = f"{quote(self.options.cursor_parameter)}={quote(self._at.cursor, safe='')}"
        response = self.client.request(
            "GET", query=query, headers=headers, bytes_max=RESPONSE_BYTES_MAX
        )
        if response.status == HTTPStatus.NOT_MODIFIED:
            return ()
        if response.is_retried:
            if response.retry_after_s is not None:
                self.clock.sleep(min(response.retry_after_s, 30))
            raise Unavailable(f"the server answers {response.text()}")
        if response.status != HTTPStatus.OK:
            raise Malformed(f"the server answers {response.text()}")
        return self._taken(response.body, response.headers.get("etag", ""))

    def _taken(self, body: bytes, etag: str) -> Sequence[SourceBatch]:
        values, cursor = _parsed(body, self.options)
        digest = hashlib.blake2b(body, digest_size=16).hexdigest()
        if self.options.cursor:
            if not values:
                return ()  # the end: asked again after the interval
            if cursor is None or cursor == self._at.cursor:
                raise Malformed(
                    f"the response has records, but its cursor {self.options.cursor} leads nowhere "
                    "new: they would come again with each poll"
                )
            self._next_ns = 0
        elif digest == self._at.digest or not values:
            return ()
        self._at = HttpPosition(
            number=self._at.number + 1,
            etag=etag if len(etag) <= ETAG_CHARS_MAX else "",
            digest=digest,
            cursor=cursor,
        )
        now_ms = self.clock.wall_ms()
        records = [Record(offset=0, timestamp_ms=now_ms, key=None, value=value) for value in values]
        return [SourceBatch(records=records, position=msgspec.json.encode(self._at))]

    def commit(self, stream: str, position: bytes) -> None:
        """Nothing to do: the server does not keep a position."""

    def close(self) -> None:
        self.client.close()


def _parsed(body: bytes, options: HttpSourceOptions) -> tuple[list[bytes], str | None]:
    """Return the records of a response, as they are written, and the next cursor."""
    try:
        if options.format == "ndjson":
            lines = [line for line in body.splitlines() if line.strip()]
            for line in lines:
                msgspec.json.decode(line)
            return lines, None
        found = _at_pointer(body, options.records)
        if found is None:
            return [], None
        values = msgspec.json.decode(found, type=list[msgspec.Raw]) if found[:1] == b"[" else None
        records = [found] if values is None else [bytes(value) for value in values]
        cursor = None
        if options.cursor and (raw := _at_pointer(body, options.cursor)) is not None:
            value = msgspec.json.decode(raw)
            cursor = None if value is None else value if isinstance(value, str) else raw.decode()
        if cursor is not None and len(cursor) > CURSOR_CHARS_MAX:
            raise Malformed(f"the cursor has {len(cursor)} characters")
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise Malformed(f"the response is not {options.format}: {error}") from error
    return records, cursor


def _at_pointer(body: bytes, pointer: str) -> bytes | None:
    """Return the JSON text at a pointer; None if there is none."""
    found = bytes(msgspec.json.decode(body, type=msgspec.Raw)).strip()
    for part in pointer.split("/")[1:]:
        name = part.replace("~1", "/").replace("~0", "~")
        if found[:1] != b"{":
            return None
        below = msgspec.json.decode(found, type=dict[str, msgspec.Raw]).get(name)
        if below is None:
            return None
        found = bytes(below).strip()
    return found
