"""Maintained: what maintenance has done to a table."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import Annotated, Any

from frazil.model import doc


@dataclass(frozen=True, slots=True, kw_only=True)
class Maintained:
    """Result of maintaining one table."""

    table: str
    files_joined: int = 0
    files_made: int = 0
    bytes_joined: int = 0
    bytes_made: int = 0
    manifests_joined: int = 0
    rows_removed: Annotated[int, doc("Rows removed by retention or erasure.")] = 0
    files_dropped: Annotated[int, doc("Data files without any row left.")] = 0
    files_rewritten: Annotated[int, doc("Data files written again without removed rows.")] = 0
    tags_made: tuple[str, ...] = ()
    tags_dropped: tuple[str, ...] = ()
    snapshots_expired: int = 0
    files_removed: Annotated[int, doc("Files of expired snapshots only.")] = 0
    orphans_removed: int = 0
    orphan_bytes: int = 0
    trouble: Annotated[tuple[str, ...], doc("Steps that failed, and why.")] = ()

    def __add__(self, other: Maintained) -> Maintained:
        """Return the sum of both."""
        assert self.table == other.table, "both must be of one table"
        names = [field.name for field in fields(self) if field.name != "table"]
        both = {name: getattr(self, name) + getattr(other, name) for name in names}
        return Maintained(table=self.table, **both)

    @property
    def is_nothing(self) -> bool:
        return self == Maintained(table=self.table)

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as the API has them."""
        return asdict(self)
