"""What a query reads of external tables: list, prune, and only then fetch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from frazil.errors import Conflict, Malformed
from frazil.query.plan.plan import TableScans
from frazil.query.plan.pruning import PrunedScan, prune
from frazil.query.scan.external import ExternalSource, ListedTable
from frazil.query.scan.tiers import TierRows
from frazil.query.sql.dialect import EngineText

TRIES_MAX = 3
"""Lists of a table whose files are overwritten meanwhile."""


def scan_external(
    source: ExternalSource | None,
    scans: Mapping[str, TableScans],
    sql: EngineText,
    check: Callable[[], None],
) -> dict[str, PrunedScan]:
    """Return what is read of each external table among `scans`; its files are fetched."""
    names = set() if source is None else set(source.names())
    for as_of in sql.as_ofs:
        if as_of.table in names:
            raise Malformed(f"{as_of.table} is an external table, which has no AS OF")
    if source is None:
        return {}
    return {name: _scan(source, name, scan, check) for name, scan in scans.items() if name in names}


def _scan(
    source: ExternalSource, name: str, scan: TableScans, check: Callable[[], None]
) -> PrunedScan:
    """Scan the files of now. If one is overwritten between listing and reading, list again."""
    for attempt in range(TRIES_MAX):
        listing = source.listing(name, check, is_fresh=attempt > 0)
        try:
            return _read(name, listing, scan, check)
        except Conflict:
            if attempt + 1 == TRIES_MAX:
                raise
    raise AssertionError("the last attempt returns or raises")


def _read(
    name: str, listing: ListedTable, scan: TableScans, check: Callable[[], None]
) -> PrunedScan:
    from frazil.lake import TableFile, TableView

    view = TableView(name=name, schema=listing.schema, root=listing.root)
    skipped: Counter[str] = Counter()

    def pruned(files: Sequence[TableFile]) -> PrunedScan:
        left = prune([TierRows(files=tuple(files), view=view)], scan.conditions)
        skipped.update(dict(left.skipped))
        return left

    files = pruned(listing.files).files
    files = pruned(listing.measured(files, check)).files
    read = pruned(listing.fetched(files, scan.columns, check))
    return PrunedScan(
        tier_rows=read.tier_rows,
        piece_count=0,
        file_count=len(listing.files),
        row_count=read.row_count,
        skipped=tuple(skipped.items()),
    )
