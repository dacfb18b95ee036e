"""StagedFile: a file of a stage as it was listed, and errors of reading it."""

from __future__ import annotations

from dataclasses import dataclass

from frazil.errors import Conflict


@dataclass(frozen=True, slots=True, kw_only=True)
class StagedFile:
    """A file that exists. URI and ETag identify its bytes."""

    path: str
    """Relative to the location of its stage."""
    uri: str
    etag: str
    size_bytes: int
    time_ms: int


def changed(file: StagedFile) -> Conflict:
    """Return the error of a file that is not the one that was listed."""
    return Conflict(
        f"{file.uri} was overwritten or deleted after it was listed (ETag {file.etag}, "
        f"{file.size_bytes} bytes): nothing of it was loaded; run the statement again"
    )
