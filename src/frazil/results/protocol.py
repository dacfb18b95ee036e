"""How answers of the API are told from errors, by whoever sends them and whoever reads them."""

from __future__ import annotations

from typing import Annotated, Final

import msgspec
from msgspec import Meta

ARROW: Final = "application/vnd.apache.arrow.stream"
PARQUET: Final = "application/vnd.apache.parquet"

ERROR_KEY: Final = b"frazil.error"
"""In the metadata of the last batch: the failure, in JSON."""
CUT_KEY: Final = b"frazil.is_cut"
"""In the metadata of the last batch: there were more rows than the limit allows."""
PARTS_KEY: Final = b"frazil.parts"
"""In the metadata of the schema, for whoever asks for it: what is read, in JSON."""


class ErrorReason(msgspec.Struct, frozen=True, kw_only=True):
    """One word for programs and one sentence for people."""

    kind: Annotated[str, Meta(description="Such as malformed, unknown, too_large, overloaded.")]
    message: Annotated[str, Meta(description="What failed, with which values, and what to do.")]


class ErrorAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """Body of every error response."""

    error: ErrorReason
