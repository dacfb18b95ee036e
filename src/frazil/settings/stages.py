"""StagesConfig: where stages may be."""

from __future__ import annotations

from typing import Annotated

import msgspec

from frazil.errors import InvalidSetting
from frazil.model import MiB, doc, require_at_least

SCHEMES = ("file", "s3", "gs", "az", "http", "https")


class StagesConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of stages, the places that COPY INTO reads files from and writes them to."""

    roots: Annotated[
        list[str],
        doc("Folders and URLs that stages must be below: `/data/in`, `s3://bucket/folder`."),
    ] = msgspec.field(default_factory=list)
    files_max: Annotated[int, doc("Files of a stage that one statement may list.")] = 1_000_000
    upload_bytes_max: Annotated[
        int, doc("A file that is uploaded to a stage in a local folder.")
    ] = 1024 * MiB
    poll_interval_ms: Annotated[
        int, doc("How often a pipe with `ON NEW FILES` lists its stage.")
    ] = 10_000

    def __post_init__(self) -> None:
        require_at_least(1, "stages", self, ("files_max", "upload_bytes_max"))
        require_at_least(100, "stages", self, ("poll_interval_ms",))
        for root in self.roots:
            scheme = root.partition("://")[0] if "://" in root else "file"
            if scheme not in SCHEMES or ("://" not in root and not root.startswith("/")):
                raise InvalidSetting(
                    f"stages.roots contains {root!r}; a root is a folder that begins with / or a "
                    f"URL that begins with {', '.join(f'{name}://' for name in SCHEMES)}",
                    "stages.roots",
                )
