"""LakeView: the snapshots of the tables that queries read, loaded in advance.

A query pins the hot tier's rows first and this view second. For each table its result is

    lake(S) + the hot rows at or above W(S)

where S is the snapshot in the view and W(S) the first offset, by partition, that S does not hold.
It has every row exactly once, at every instant:

- S holds exactly the rows below W(S) that were not removed: a commit adds files and offsets
  atomically, and maintenance only rewrites the same rows, or removes some for good. So no row is
  in both parts, even during a commit: with the old view the new rows come from the hot tier, with
  the new view from the lake.
- The hot tier has every row from E, below which it has evicted, up to H. It evicts only rows below
  W of the published view, and W never decreases. So a query that has pinned E then gets a view with
  W(S) >= E, and there is no gap. In the opposite order eviction could come between.
- If the hot tier lags behind the lake (H < W), it adds nothing, and the lake has all rows.

Dead letters have offsets of their own, by topic. They are committed before the rows of the same
offsets, so their table is loaded last: a view that holds a row also holds the dead letters of
earlier offsets.

An old view is still correct: newer rows are in the hot tier, which evicts by the view. So if the
catalog does not answer, queries use the last view until its files are deleted.

Tables of other topics join the view on first use. Their rows above W(S) are in the log, which does
not wait for views: see topic_tables.py. So do all other tables of the namespace, such as those
loaded from files; all of their rows are in the lake.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from frazil.disk import RealDisk
from frazil.errors import Unavailable, Unknown
from frazil.lake.append.commit import COMMIT_ID, removed_offsets, topic_ids
from frazil.lake.append.dead_letters import DEAD_LETTERS
from frazil.lake.catalog.catalog import catalog_calls, catalog_path, open_catalog
from frazil.lake.loaded.ledger import LEDGER, read_ledger
from frazil.lake.loaded.load_table import arrow_schema
from frazil.lake.loaded.log_ledger import log_ledgers
from frazil.lake.scan.data_file import TablesView, TableView, plain_location, root_of
from frazil.lake.scan.snapshot_info import snapshots_of
from frazil.lake.tables.promoted import promoted_fields
from frazil.lake.tables.properties import TABLE_ID, TOPIC_PREFIX, is_keyed
from frazil.lake.tables.record_rows import columns_of
from frazil.model import NO_PROMOTIONS, Promotions
from frazil.model.arrow import TABLES
from frazil.settings import LakeConfig

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog
    from pyiceberg.table import Table
    from pyiceberg.table.snapshots import Snapshot

    from frazil.lake.scan.manifests import ManifestFiles, Manifests
    from frazil.lake.scan.table_info import TableInfo


NAMES = (*(name for name in TABLES if name != DEAD_LETTERS), DEAD_LETTERS)
"""In the order in which they are loaded."""


class LakeView:
    """Thread-safe. Needs PyIceberg but not Java."""

    def __init__(
        self, config: LakeConfig, data_folder: Path, promotions: Promotions = NO_PROMOTIONS
    ) -> None:
        self._config = config
        self._promotions = promotions
        self._data_folder = data_folder
        self._lock = threading.Lock()
        self._catalog: Catalog | None = None
        self._manifests: Manifests | None = None
        self._tables: dict[str, Table] = {}
        self._topics: set[str] = set()
        """Tables of other topics that were requested so far."""
        self._others: tuple[str, ...] = ()
        """Tables that do not come from the log, as far as they are known."""
        self._view: TablesView | None = None
        self._is_closed = False

    def pin(self, topics: Collection[str] = ()) -> TablesView:
        """Return the current view, including these tables of other topics. Loads the tables if
        the view lacks any; raises `Unavailable` if that fails."""
        view = self._view
        if view is None or not view.tables.keys() >= set(topics):
            return self.refresh(topics)
        return view

    @property
    def latest(self) -> TablesView | None:
        """The current view, or None before the first refresh. Never blocks."""
        return self._view

    def held(self, table: str, topic: str, partition: int) -> int:
        """Return the first offset that the view does not hold; 0 without a view."""
        view = self._view
        return 0 if view is None else view.held(table, topic, partition)

    def removed_below(self, topic: str, partition: int) -> int:
        """Return the offset after the last row that was removed from the tables; 0 without a
        view."""
        view = self._view
        return 0 if view is None else view.removed_below(topic, partition)

    def refresh(self, topics: Collection[str] = ()) -> TablesView:
        """Load tables whose metadata has changed, and from now on also these of other topics."""
        with self._opened() as catalog:
            self._topics.update(topics)
            self._view = self._loaded(catalog, self._view)
            return self._view

    def topic_tables(self) -> list[str]:
        """Return the tables of other topics in the catalog."""
        return [name for name in self._names() if name.startswith(TOPIC_PREFIX)]

    @property
    def known_others(self) -> tuple[str, ...]:
        """Tables that do not come from the log, without asking the catalog."""
        return self._others

    def other_tables(self) -> tuple[str, ...]:
        """Return the tables in the catalog that do not come from the log."""
        self._others = tuple(
            name for name in self._names() if name not in TABLES and not is_of_topic(name)
        )
        return self._others

    def load_history(self) -> list[tuple[str, pa.Table]]:
        """Return the load ledger of each table that was loaded from files."""
        names = self.other_tables()
        self.pin(names)
        with self._lock, catalog_calls(self._config):
            tables = [(name, self._tables[name]) for name in names if name in self._tables]
            found = [
                (name, read_ledger(table.properties[LEDGER], table.io))
                for name, table in tables
                if LEDGER in table.properties
            ]
        return [*found, *log_ledgers(RealDisk(self._data_folder))]

    def _names(self) -> list[str]:
        """Return the tables in the catalog."""
        from pyiceberg.exceptions import NoSuchNamespaceError

        with self._opened() as catalog:
            try:
                names = [] if catalog is None else catalog.list_tables(self._config.namespace)
            except NoSuchNamespaceError:
                return []
        return sorted(name for *_, name in names)

    def at(self, name: str, snapshot_id: int) -> TableView:
        """Return the view of another snapshot of a table. Raise `Unknown` if it has expired."""
        current = self.pin().tables[name]
        if snapshot_id == current.snapshot_id:
            return current
        with self._lock, catalog_calls(self._config):
            table = self._tables.get(name)
            snapshot = None if table is None else table.metadata.snapshot_by_id(snapshot_id)
            if table is None or snapshot is None:
                raise Unknown(f"{name} has no snapshot {snapshot_id} any more")
            return self._view_of(name, table, snapshot)

    def info(self, name: str) -> TableInfo | None:
        """Return the metadata of a table in the current view, or None if it is missing."""
        if name not in TABLES and name in self._names():
            self.pin([name])
        view = self.pin().tables.get(name)
        with self._lock:
            table = self._tables.get(name)
        if view is None or table is None:
            return None
        from frazil.lake.scan.table_info import table_info_of

        return table_info_of(table, view)

    def close(self, within_s: float = -1) -> bool:
        """Close the catalog. Return False, and leave it open, if it is in use all the time."""
        self._is_closed = True
        if not self._lock.acquire(timeout=within_s):
            return False
        try:
            if self._catalog is not None:
                self._catalog.close()
        finally:
            self._lock.release()
        return True

    @contextmanager
    def _opened(self) -> Iterator[Catalog | None]:
        """Yield the catalog under the lock, or None if it does not exist yet."""
        with self._lock:
            if self._is_closed:
                raise Unavailable("the lake is closed")
            with catalog_calls(self._config):
                path = catalog_path(self._config, self._data_folder)
                # Opening an SQLite catalog would create it.
                if self._catalog is None and (path is None or path.exists()):
                    self._catalog = open_catalog(self._config, self._data_folder)
                yield self._catalog

    def _loaded(self, catalog: Catalog | None, last: TablesView | None) -> TablesView:
        names = (*sorted(self._topics), *NAMES)
        if catalog is None:
            return TablesView(tables={name: self._empty_view(name) for name in names})
        known = {} if last is None else last.tables
        tables: dict[str, TableView] = {}
        is_new = False
        for name in names:
            table = self._load(catalog, name)
            before = self._tables.get(name)
            if table is None:
                tables[name] = self._empty_view(name)
                self._tables.pop(name, None)
            elif before is not None and before.metadata_location == table.metadata_location:
                tables[name] = known[name]
            else:
                tables[name] = self._view_of(name, table, table.current_snapshot())
                self._tables[name] = table
                is_new = True
        if is_new:
            self._evict_manifests()
        return TablesView(tables=tables)

    def _load(self, catalog: Catalog, name: str) -> Table | None:
        """Return the current table, or the object of the last refresh if it has not changed."""
        from pyiceberg.exceptions import NoSuchNamespaceError, NoSuchTableError

        full_name = f"{self._config.namespace}.{name}"
        before = self._tables.get(name)
        if before is not None and _location(catalog, full_name) == before.metadata_location:
            return before
        try:
            return catalog.load_table(full_name)
        except (NoSuchTableError, NoSuchNamespaceError):
            return None

    def _view_of(self, name: str, table: Table, snapshot: Snapshot | None) -> TableView:
        from frazil.lake.scan.manifests import Manifests

        if self._manifests is None:
            self._manifests = Manifests()
        root = root_of(table)
        snapshots = tuple(snapshots_of(table.metadata))
        view = TableView(
            name=name,
            schema=_schema(name, table, self._promotions),
            root=root,
            snapshots=snapshots,
            tags={name: ref.snapshot_id for name, ref in table.metadata.refs.items()},
            removed=removed_offsets(table),
            topic_ids=topic_ids(table),
            table_id=table.properties.get(TABLE_ID),
            promoted=self._promoted(name, table),
        )
        if snapshot is None:
            return view
        manifests = self._manifests.of(table, snapshot, root)
        offsets = next(s.offsets for s in snapshots if s.snapshot_id == snapshot.snapshot_id)
        return replace(
            view,
            snapshot_id=snapshot.snapshot_id,
            offsets=offsets or {},
            files=manifests.files,
            refusal=_refusal(table, snapshot, manifests),
        )

    def _promoted(self, name: str, table: Table) -> dict[str, int | None]:
        """Return the promoted columns of the settings, with their ids in the table."""
        ids = {each.column: each.field_id for each in promoted_fields(table)}
        return {column.name: ids.get(column) for column in self._promotions.get(name, ())}

    def _empty_view(self, name: str) -> TableView:
        is_ours = name in TABLES or is_of_topic(name)
        schema = columns_of(name, self._promotions) if is_ours else pa.schema([])
        return TableView(name=name, schema=schema)

    def _evict_manifests(self) -> None:
        pinned = [
            (table, snapshot)
            for table in self._tables.values()
            if (snapshot := table.current_snapshot()) is not None
        ]
        if self._manifests is not None:
            self._manifests.keep_only(pinned)


def is_of_topic(name: str) -> bool:
    return name.startswith(TOPIC_PREFIX)


def _location(catalog: Catalog, full_name: str) -> str | None:
    """Return the metadata location without loading the table, or None if the catalog cannot."""
    from pyiceberg.catalog.sql import IcebergTables, SqlCatalog
    from sqlalchemy import select
    from sqlalchemy.orm import Session

    if not isinstance(catalog, SqlCatalog):
        return None
    namespace, _, name = full_name.rpartition(".")
    statement = select(IcebergTables.metadata_location).where(
        IcebergTables.catalog_name == catalog.name,
        IcebergTables.table_namespace == namespace,
        IcebergTables.table_name == name,
    )
    with Session(catalog.engine) as session:
        return session.scalar(statement)


def _schema(name: str, table: Table, promotions: Promotions) -> pa.Schema:
    if name not in TABLES and not is_of_topic(name):
        return pa.schema([field.remove_metadata() for field in arrow_schema(table.schema())])
    required = {field.name for field in table.schema().fields if field.required}
    columns = columns_of(name, promotions)
    return pa.schema([f if f.name in required else f.with_nullable(True) for f in columns])


def _refusal(table: Table, snapshot: Snapshot, manifests: ManifestFiles) -> str | None:
    name = ".".join(table.name())
    foreign = manifests.foreign
    deletes = manifests.other_deletes
    if is_keyed(table.properties):
        if snapshot.summary is None or snapshot.summary.get(COMMIT_ID) is None or deletes:
            return (
                f"snapshot {snapshot.snapshot_id} of {name} was not written by Frazil, and a keyed "
                "table has one writer; read it with Spark, or roll it back"
            )
    else:
        deletes += len(manifests.deletes)
    if not plain_location(table.location()).startswith("/"):
        return (
            f"the files of {name} are at {table.location()}, but SQL reads local files only; use "
            "Spark"
        )
    if _has_renamed(table):
        return (
            f"columns of {name} were renamed or replaced, which SQL does not follow; use Spark, or "
            "rewrite the table with Spark's procedure rewrite_data_files"
        )
    if deletes:
        return (
            f"{name} has {deletes} delete files, which only Spark applies. Rewrite the table with "
            "Spark's procedure rewrite_data_files and its options 'rewrite-all' and "
            "'remove-dangling-deletes'"
        )
    if foreign:
        return (
            f"{name} has {len(foreign)} files that are not Parquet or outside its folder, such as "
            f"{foreign[0]}; rewrite them with Spark's procedure rewrite_data_files"
        )
    return None


def _has_renamed(table: Table) -> bool:
    """Return whether a column has another name, or a name another column, than in older files:
    files are read by names."""
    now = {field.field_id: field.name for field in table.schema().fields}
    ids = {name: field_id for field_id, name in now.items()}
    return any(
        now.get(field.field_id, field.name) != field.name
        or ids.get(field.name, field.field_id) != field.field_id
        for schema in table.schemas().values()
        for field in schema.fields
    )
