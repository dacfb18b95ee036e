"""McpSource: where tools read, and how long they look back."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

import pyarrow as pa

from frazil.model import Clock
from frazil.results import Limits, Result
from frazil.serve.http.request import wall_time

Run = Callable[[str, Limits], Result]
"""Starts one query."""


@dataclass(frozen=True, slots=True, kw_only=True)
class McpSource:
    """A node or an open data folder."""

    run: Run
    clock: Clock
    url: str | None
    """Of the page; None if there is none."""
    bytes_max: int
    """Of the rows of one query inside a tool."""

    def ask(self, text: str) -> pa.Table:
        """Run one query and return all rows."""
        with self.run(text, Limits(bytes_max=self.bytes_max)) as result:
            return result.arrow()

    def now(self) -> datetime.datetime:
        return wall_time(self.clock)

    def page(self, path: str, parameters: Mapping[str, str | Sequence[str] | None]) -> str | None:
        """Return the address of a screen."""
        if self.url is None:
            return None
        query = urlencode({k: v for k, v in parameters.items() if v}, doseq=True)
        return f"{self.url}/{path}{'?' if query else ''}{query}"
