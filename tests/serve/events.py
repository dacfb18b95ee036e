"""A live tail as a browser reads it: events, one after the other, over a real connection."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from dataclasses import dataclass
from types import TracebackType
from typing import Any
from urllib.parse import urlencode

SILENCE_S = 30
"""Longer than any event takes to come; a test that waits for it has failed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One event: what it is, its data, and where to go on."""

    kind: str
    data: Any
    place: str | None


class Events:
    """One connection to a tail. Owned by one thread."""

    def __init__(
        self, port: int, last: str | None = None, path: str = "tail", **parameters: object
    ) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=SILENCE_S)
        headers = {} if last is None else {"Last-Event-ID": last}
        self._connection.request(
            "GET", f"/api/v1/{path}?{urlencode(parameters, doseq=True)}", headers=headers
        )
        self.response = self._connection.getresponse()
        self.status = self.response.status
        self.began: dict[str, str] = {}
        """The first event, which says that rows from now on are shown."""
        if self.status == http.client.OK:
            self.began = self._lines()

    def __iter__(self) -> Iterator[Event]:
        """Events as they come, until the node ends them."""
        while fields := self._lines():
            if "data" in fields:
                yield Event(
                    kind=fields.get("event", "message"),
                    data=json.loads(fields["data"]),
                    place=fields.get("id"),
                )

    def _lines(self) -> dict[str, str]:
        """The lines of one event; none when there are no more."""
        fields: dict[str, str] = {}
        while (line := self.response.readline().decode()) not in ("", "\n"):
            name, _, value = line.rstrip("\n").partition(": ")
            fields[name] = value
        return fields

    def until(self, count: int) -> list[Event]:
        """So many events, and those that came with the last of them."""
        found: list[Event] = []
        for event in self:
            found.append(event)
            if len(found) >= count and event.place is not None:
                return found
        raise AssertionError(f"the tail ended after {len(found)} events")

    def close(self) -> None:
        self._connection.close()

    def __enter__(self) -> Events:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
