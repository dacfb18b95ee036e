"""Media types, metadata keys and error bodies that the HTTP API and its clients share."""

from __future__ import annotations

from typing import Annotated, Final

import msgspec
from msgspec import Meta

ARROW: Final = "application/vnd.apache.arrow.stream"
PARQUET: Final = "application/vnd.apache.parquet"

ERROR_KEY: Final = b"frazil.error"
"""In the metadata of the last batch: the error, as JSON."""
CUT_KEY: Final = b"frazil.is_cut"
"""In the metadata of the last batch: rows beyond the limit were left out."""
PARTS_KEY: Final = b"frazil.parts"
"""In the metadata of the schema, on request: what is read, as JSON."""


class ErrorReason(msgspec.Struct, frozen=True, kw_only=True):
    """One word for programs and one sentence for people."""

    kind: Annotated[str, Meta(description="Such as malformed, unknown, too_large, overloaded.")]
    message: Annotated[str, Meta(description="What failed, with which values, and what to do.")]


class ErrorAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """Body of every error response."""

    error: ErrorReason
