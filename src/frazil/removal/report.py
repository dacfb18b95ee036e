"""RemovalReport: what was removed from where, and what is left. Sent by the API as it is."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from frazil.model import doc


class RemovalPreview(msgspec.Struct, frozen=True, kw_only=True):
    """What a removal would do to one table."""

    table: str
    rows: Annotated[int, doc("Rows that would be removed.")]
    files: Annotated[int, doc("Data files that have some of these rows.")]

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as the API has them."""
        return msgspec.structs.asdict(self)


class TableRemoval(msgspec.Struct, frozen=True, kw_only=True):
    """What was removed from one table."""

    table: str
    rows: int
    files_dropped: Annotated[int, doc("Data files without any row left.")]
    files_rewritten: Annotated[int, doc("Data files written again without these rows.")]
    snapshots_expired: int
    tags_dropped: list[str]
    files_deleted: Annotated[int, doc("Files of expired snapshots, and orphan files.")]
    rows_left: Annotated[int, doc("Such rows found afterwards in the files of all snapshots.")]


class RemovalReport(msgspec.Struct, frozen=True, kw_only=True):
    """Result of an erasure, or of retention applied at once."""

    tables: list[TableRemoval]
    skipped: Annotated[list[str], doc("Tables that the condition does not fit, and why.")]
    log_copies: Annotated[int, doc("Offsets that the log still has of removed rows.")]
    hot_copies: Annotated[int, doc("Offsets that the hot tier still has of removed rows.")]
    left: Annotated[list[str], doc("What could not be removed, and what to do.")]

    @property
    def is_complete(self) -> bool:
        """Whether no such row is left in the data folder."""
        is_clean = not any(table.rows_left for table in self.tables)
        return is_clean and not (self.log_copies or self.hot_copies or self.left)

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as the API has them."""
        fields: dict[str, Any] = msgspec.to_builtins(self)
        return fields
