"""Colored text on terminals that support it."""

from __future__ import annotations

import os
import zlib
from dataclasses import dataclass
from typing import TextIO

RED, GREEN, YELLOW, BLUE, MAGENTA, CYAN, DIM, BOLD = "31", "32", "33", "34", "35", "36", "2", "1"
SERVICES = ("36", "32", "33", "35", "34", "96", "92", "95", "94")
"""Colors of services. Red is reserved for errors."""


@dataclass(frozen=True, slots=True)
class Colors:
    """Colors text if on. Escape codes have no width: pad first, then color."""

    is_on: bool

    @classmethod
    def of(cls, stream: TextIO) -> Colors:
        """On for a terminal, unless NO_COLOR is set or TERM is dumb."""
        return cls(
            stream.isatty()
            and not os.environ.get("NO_COLOR")
            and os.environ.get("TERM", "dumb") != "dumb"
        )

    def __call__(self, text: str, *codes: str) -> str:
        if not self.is_on or not codes or not text:
            return text
        return f"\x1b[{';'.join(codes)}m{text}\x1b[0m"

    def service(self, text: str, name: str) -> str:
        """Return text in the color of a service, which never changes."""
        return self(text, SERVICES[zlib.crc32(name.encode()) % len(SERVICES)])
