"""ExternalConfig: limits of external tables."""

from __future__ import annotations

from typing import Annotated

import msgspec

from frazil.model import MiB, doc, require_at_least


class ExternalConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of external tables, which are files of stages that queries read."""

    files_max: Annotated[int, doc("Files of one external table.")] = 10_000
    query_bytes_max: Annotated[
        int, doc("Bytes of files that a query may fetch because they are not in the cache.")
    ] = 1024 * MiB
    cache_bytes_max: Annotated[
        int, doc("Bytes of fetched files in the data folder. Least recently used ones go first.")
    ] = 4096 * MiB
    list_age_ms: Annotated[
        int, doc("How long a list of files is used before they are listed again.")
    ] = 10_000

    def __post_init__(self) -> None:
        require_at_least(1, "external", self, ("files_max", "query_bytes_max", "cache_bytes_max"))
        require_at_least(0, "external", self, ("list_age_ms",))
