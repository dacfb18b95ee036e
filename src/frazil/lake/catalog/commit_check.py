"""A commit that was done, and is called refused all the same.

A catalog does a commit, and its answer is lost. Somebody on the way asks again by himself: a
gateway, a library. Now the table is not any more as the commit wants it, by that very commit, and
the answer is "conflict". PyIceberg takes that for "not done", and removes the manifests which the
table has just got: none of its rows could be read any more. So whoever is refused looks first.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from frazil.metrics import Counter

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog
    from pyiceberg.table import CommitTableResponse, Table
    from pyiceberg.table.update import TableRequirement, TableUpdate

logger = logging.getLogger(__name__)

LANDED = Counter("frazil.lake.commits.landed", "Commits that were done, though called refused.")


def look_when_refused(catalog: Catalog) -> None:
    """Have a catalog call a commit refused only when the table does not have its snapshot. When
    that cannot be looked up, the error says so, and no file is removed."""
    from pyiceberg.exceptions import CommitFailedException

    def commit_table(
        table: Table, requirements: tuple[TableRequirement, ...], updates: tuple[TableUpdate, ...]
    ) -> CommitTableResponse:
        try:
            return type(catalog).commit_table(catalog, table, requirements, updates)
        except CommitFailedException:
            landed = _landed(catalog, table, updates)
            if landed is None:
                raise
        LANDED.add(table=".".join(table.name()))
        logger.warning("a commit was called refused, and is done", extra={"table": table.name()})
        return landed

    catalog.commit_table = commit_table  # type: ignore[method-assign]


def _landed(
    catalog: Catalog, table: Table, updates: tuple[TableUpdate, ...]
) -> CommitTableResponse | None:
    from pyiceberg.table import CommitTableResponse
    from pyiceberg.table.update import AddSnapshotUpdate

    added = [each.snapshot.snapshot_id for each in updates if isinstance(each, AddSnapshotUpdate)]
    if not added:
        return None
    now = catalog.load_table(table.name())
    if any(now.metadata.snapshot_by_id(snapshot_id) is None for snapshot_id in added):
        return None
    found = {"metadata": now.metadata, "metadata-location": now.metadata_location}
    return CommitTableResponse.model_validate(found)
