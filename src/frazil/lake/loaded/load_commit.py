"""Commits a load: data files, ledger, new columns and the table itself, in one transaction.

1. load    the table from the catalog
2. check   is this commit id there already? does the ledger have one of the files? has another
           change moved the columns?
3. swap    the catalog accepts it only if the table's snapshot is still that of 1, or if it still
           does not exist
4. retry   from 1, after a conflict or an unknown outcome
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from frazil.errors import Unavailable
from frazil.lake.append.commit import COMMIT_ID, find_commit, repeat
from frazil.lake.catalog.catalog import catalog_calls
from frazil.lake.loaded.ledger import LEDGER, read_ledger, write_ledger
from frazil.lake.loaded.load_table import LoadConflict, LoadTable, add_columns, with_columns
from frazil.model.arrow import LOADED, LedgerEntry, loaded_keys

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog
    from pyiceberg.manifest import DataFile
    from pyiceberg.table import Table, Transaction
    from pyiceberg.table.metadata import TableMetadata

    from frazil.lake.loaded.load_writer import LoadedFile
    from frazil.model import Clock
    from frazil.settings import LakeConfig

logger = logging.getLogger(__name__)

METADATA_FOLDER = "metadata"


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadChange:
    """Data files, and the files of stages whose rows they have."""

    files: Sequence[LoadedFile]
    entries: Sequence[LedgerEntry]
    commit_id: str
    is_forced: bool = False
    """Whether files may be loaded that the table has already."""


def commit_load(
    catalog: Catalog, config: LakeConfig, plan: LoadTable, change: LoadChange, *, clock: Clock
) -> int:
    """Commit a load exactly once. Returns its snapshot id.

    Raises `LoadConflict` if another load came first: plan again. Raises as `commit` otherwise.
    """
    count = 0

    def swap(transaction: Transaction, metadata: TableMetadata, table: Table | None) -> int:
        nonlocal count
        count += 1
        location = (
            f"{metadata.location}/{METADATA_FOLDER}/ledger-{change.commit_id}-{count}.parquet"
        )
        before = None if table is None else table.properties.get(LEDGER)
        write_ledger(
            read_ledger(before, plan.io),
            change.entries,
            location=location,
            io=plan.io,
            commit_id=change.commit_id,
            now_ms=clock.wall_ms(),
        )
        transaction.set_properties({LEDGER: location})
        summary = {COMMIT_ID: change.commit_id}
        with transaction.update_snapshot(snapshot_properties=summary).fast_append() as append:
            for file in change.files:
                append.append_data_file(loaded_data_file(file, metadata))
        snapshot_id = append.snapshot_id
        transaction.commit_transaction()
        return snapshot_id

    def attempt(table: Table) -> int:
        snapshot = find_commit(table, change.commit_id)
        if snapshot is not None:
            return snapshot.snapshot_id
        if plan.is_new:
            raise LoadConflict(f"{plan.name} was created by another load; plan again")
        _check(table, plan, change)
        transaction = table.transaction()
        add_columns(transaction, plan.new_columns)
        return swap(transaction, transaction.table_metadata, table)

    if plan.creation is not None:
        try:
            with catalog_calls(config):
                return swap(plan.creation, plan.metadata, None)
        except creation_errors() as error:
            # The table exists now; it may be this load that created it.
            reason = error
        except Unavailable:
            if not catalog.table_exists(plan.identifier):
                raise
            reason = None
        logger.info("table created meanwhile", extra={"table": plan.name, "reason": str(reason)})
    return repeat(catalog, plan.name, attempt, clock)


def creation_errors() -> tuple[type[Exception], ...]:
    """Return errors after which the table may exist, created by this commit or by another."""
    from pyiceberg.exceptions import (
        CommitFailedException,
        CommitStateUnknownException,
        TableAlreadyExistsError,
    )

    return (CommitFailedException, CommitStateUnknownException, TableAlreadyExistsError)


def _check(table: Table, plan: LoadTable, change: LoadChange) -> None:
    planned = {
        (field.field_id, field.name, str(field.field_type))
        for field in plan.metadata.schema().fields
    }
    now = {
        (field.field_id, field.name, str(field.field_type))
        for field in with_columns(table, plan.new_columns).schema().fields
    }
    if planned != now or table.metadata.default_spec_id != plan.metadata.default_spec_id:
        raise LoadConflict(f"the columns or partitions of {plan.name} were changed; plan again")
    if change.is_forced:
        return
    known = loaded_keys(read_ledger(table.properties.get(LEDGER), table.io))
    for entry in change.entries:
        if entry.status == LOADED and (entry.uri, entry.etag) in known:
            raise LoadConflict(f"{entry.uri} was loaded by another statement; plan again")


def loaded_data_file(file: LoadedFile, metadata: TableMetadata) -> DataFile:
    """Return the Iceberg metadata of a written file."""
    from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
    from pyiceberg.typedef import Record

    entry = DataFile.from_args(
        content=DataFileContent.DATA,
        file_path=f"{metadata.location}/{file.path}",
        file_format=FileFormat.PARQUET,
        partition=Record(*file.partition),
        file_size_in_bytes=file.size_bytes,
        sort_order_id=file.sort_order_id,
        equality_ids=None,
        key_metadata=None,
        **file.metrics,
    )
    entry.spec_id = metadata.default_spec_id
    return entry
