"""TablesConfig: settings of keyed tables."""

from __future__ import annotations

from typing import Annotated

import msgspec

from frazil.model import GiB, MiB, doc, require_at_least


class TablesConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of keyed tables."""

    key_bytes_max: Annotated[
        int, doc("Memory of the key indexes, all tables. Above it, new keys are refused.")
    ] = 1 * GiB
    seal_bytes: Annotated[
        int, doc("Seal the rows of a partition into a file, and free their memory, at this size.")
    ] = 32 * MiB
    read_bytes: Annotated[int, doc("Apply changes in portions of this size.")] = 4 * MiB
    checkpoint_bytes: Annotated[
        int, doc("Save the key index after this many bytes of rows were sealed.")
    ] = 256 * MiB

    mapped_bytes_max: Annotated[
        int,
        doc("Pages of row files that a table keeps in memory. Above it the oldest are released."),
    ] = 512 * MiB
    history_ms: Annotated[
        int,
        doc("Keep the past of rows, for AS OF and changes, for this long. Then it is compacted."),
    ] = 24 * 3600 * 1000

    def __post_init__(self) -> None:
        require_at_least(1, "tables", self)
