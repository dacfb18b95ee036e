"""HotConfig: settings of the hot tier."""

from __future__ import annotations

from typing import Annotated

import msgspec

from frazil.errors import InvalidSetting
from frazil.model import GiB, MiB, doc, require_at_least


class HotConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of the hot tier."""

    enabled: Annotated[
        bool, doc("Make rows visible to SQL at once. A node that only receives can do without.")
    ] = True
    seal_bytes: Annotated[
        int, doc("Seal the rows of a table into a file, and free their memory, at this size.")
    ] = 32 * MiB
    seal_age_ms: Annotated[int, doc("Also seal them when the first of them is this old.")] = 60_000
    memory_bytes_max: Annotated[
        int, doc("Rows not sealed yet, all tables. At this limit the log is not read further.")
    ] = 256 * MiB
    disk_bytes_max: Annotated[
        int,
        doc("Sealed files, all tables. Above it the oldest go; with a lake, only what it holds."),
    ] = 8 * GiB
    read_bytes: Annotated[int, doc("Decode requests in portions of this size.")] = 4 * MiB
    refresh_ms: Annotated[
        int, doc("How often new rows become visible while requests keep arriving.")
    ] = 20
    retry_ms: Annotated[
        int, doc("Wait this long after a failed seal, or when the log cannot be read.")
    ] = 1000

    def __post_init__(self) -> None:
        require_at_least(1, "hot", self)
        for name, harm in (
            ("memory_bytes_max", "nothing could be read while a segment is being sealed"),
            ("disk_bytes_max", "a segment would be evicted as soon as it is sealed"),
        ):
            value = getattr(self, name)
            if value < 2 * self.seal_bytes:
                raise InvalidSetting(
                    f"hot.{name} ({value}) is less than twice hot.seal_bytes "
                    f"({self.seal_bytes}): {harm}",
                    f"hot.{name}",
                    "hot.seal_bytes",
                )
