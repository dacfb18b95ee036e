"""Check rejected commits against the table before PyIceberg cleans up after them.

A gateway or a client library may resend a commit whose response was lost. The first request has
already changed the table, so the second one fails with a conflict. PyIceberg would take this for a
failed commit and delete manifests that the table now uses, which makes its rows unreadable.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from frazil.metrics import Counter

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog
    from pyiceberg.table import CommitTableResponse, Table
    from pyiceberg.table.update import TableRequirement, TableUpdate
else:
    Catalog = object  # the door of lake opens without PyIceberg

logger = logging.getLogger(__name__)

LANDED = Counter(
    "frazil.lake.commits.landed", "Commits that succeeded although the catalog reported a conflict."
)


def with_commit_check(catalog_class: type[Catalog]) -> type[Catalog]:
    """Return a subclass of a catalog class that checks rejected commits."""
    return type(f"Checked{catalog_class.__name__}", (CommitCheck, catalog_class), {})


class CommitCheck(Catalog):
    """Base class placed before a catalog class: a commit fails with a conflict only if the table
    does not have its snapshots. If the table cannot be loaded, that error is raised instead, and
    PyIceberg deletes no file."""

    def commit_table(
        self,
        table: Table,
        requirements: tuple[TableRequirement, ...],
        updates: tuple[TableUpdate, ...],
    ) -> CommitTableResponse:
        from pyiceberg.exceptions import CommitFailedException

        try:
            return super().commit_table(table, requirements, updates)  # type: ignore[safe-super]
        except CommitFailedException:
            response = _response_if_committed(self, table, updates)
            if response is None:
                raise
        name = table.name()
        LANDED.add(table=".".join(name))
        logger.warning("commit succeeded despite a reported conflict", extra={"table": name})
        return response


def _response_if_committed(
    catalog: Catalog, table: Table, updates: tuple[TableUpdate, ...]
) -> CommitTableResponse | None:
    from pyiceberg.table import CommitTableResponse
    from pyiceberg.table.update import AddSnapshotUpdate

    added = [
        update.snapshot.snapshot_id for update in updates if isinstance(update, AddSnapshotUpdate)
    ]
    if not added:
        return None
    current = catalog.load_table(table.name())
    if any(current.metadata.snapshot_by_id(snapshot_id) is None for snapshot_id in added):
        return None
    fields = {"metadata": current.metadata, "metadata-location": current.metadata_location}
    return CommitTableResponse.model_validate(fields)
