"""SavedQuery: SQL with a title. It is not validated here; its errors show when it runs."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from frazil.model import doc

SQL_CHARS_MAX = 64 * 1024


class SavedQuery(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True
):
    """A query to run again."""

    format: Annotated[Literal[1], doc("Version of the file format.")]
    title: Annotated[str, Meta(min_length=1, max_length=200)]
    description: Annotated[str, Meta(max_length=2000)] = ""
    sql: Annotated[str, Meta(min_length=1, max_length=SQL_CHARS_MAX, description="SQL to run.")]
    engine: Annotated[Literal["spark"] | None, doc("Spark instead of the node's engine.")] = None

    def check(self) -> None:
        """There are no rules across fields."""
