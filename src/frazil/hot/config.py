"""What an operator may set for the hot tier. Unknown keys and contradicting values are refused."""

from __future__ import annotations

import msgspec

from frazil.errors import Malformed
from frazil.model import GiB, MiB


class HotConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of the hot tier."""

    enabled: bool = True
    """Rows are visible to SQL at once. A node that only receives can do without."""
    seal_bytes: int = 32 * MiB
    """Rows of a table become a file, and leave the memory, when they take this much."""
    seal_age_ms: int = 60_000
    """They also become a file when the first of them is so old."""
    memory_bytes_max: int = 256 * MiB
    """Rows that are not sealed yet, of all tables. At this much nothing more is read."""
    disk_bytes_max: int = 8 * GiB
    """Sealed files, of all tables. Above it the oldest go; beside a lake only what that holds."""
    read_bytes: int = 4 * MiB
    """Requests are decoded this much at a time."""
    refresh_ms: int = 40
    """While requests keep coming, they become visible this often."""
    retry_ms: int = 1000
    """How long to wait after a failed seal, or when the log cannot be read."""

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            if name != "enabled" and getattr(self, name) < 1:
                raise Malformed(f"hot.{name} is {getattr(self, name)}; it must be at least 1")
        if self.memory_bytes_max < 2 * self.seal_bytes:
            raise Malformed(
                f"hot.memory_bytes_max ({self.memory_bytes_max}) is below two times hot.seal_bytes "
                f"({self.seal_bytes}): nothing could be read while a segment is being sealed"
            )
        if self.disk_bytes_max < 2 * self.seal_bytes:
            raise Malformed(
                f"hot.disk_bytes_max ({self.disk_bytes_max}) is below two times hot.seal_bytes "
                f"({self.seal_bytes}): a segment would go as soon as it is sealed"
            )
