"""WriteToken: what a write to a keyed table returns, so that a later query can wait for it."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta


class WriteToken(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A durable write. A query with it as `at_least` sees the write."""

    table: Annotated[str, Meta(max_length=128, description="Name of the table.")]
    offsets: Annotated[
        dict[int, int],
        Meta(max_length=256, description="Partition to the offset after the write."),
    ]
