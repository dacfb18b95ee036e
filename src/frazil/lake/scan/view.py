"""LakeView: which rows of the tables queries see, pinned, and looked up before anybody asks.

A query takes the hot tier's rows first and this view second. Its answer is, for each table,

    lake(S) + the hot rows at or above W(S)

where S is the snapshot of the view and W(S) the first offset, by partition, that S does not hold.
Every row is in it exactly once, at every instant:

- S holds exactly the rows below W(S): each commit adds files and offsets in one step, or neither,
  and maintenance only writes the same rows anew. So no row is in both parts, also while a commit
  lands: whoever has the view of before takes the new rows from the hot tier, and whoever has the
  view of after takes them from the lake.
- The hot tier shows every row from E, below which it has evicted, up to H. It evicts below what a
  view holds that queries already get; views follow each other, and W never goes back. So a query
  that sees E gets, later, a view with W(S) >= E, and nothing lies between the two parts. In the
  other order it would: eviction could come between.
- When the hot tier lags behind the lake (H < W), it has nothing to add, and the lake has all.

The offsets of dead letters are their own, by topic. Their commit comes before that of the rows they
are missing from, so their table is looked up last: a view that holds a row's neighbours holds the
dead letters among them, too.

A view that is old is still right: rows that came since are in the hot tier, which evicts by the
view. So when the catalog does not answer, the last view is used, until its files are gone.

Tables of other topics are in a view from when somebody first asks for them. Their rows above W(S)
are in the log, which does not wait for views: see topic_tables.py.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from frazil.errors import Unavailable, Unknown
from frazil.lake.append.task import DEAD_LETTERS
from frazil.lake.catalog.catalog import catalog_calls, catalog_path, open_catalog
from frazil.lake.config import LakeConfig
from frazil.lake.scan.data_file import TablesView, TableView, plain_location, root_of
from frazil.lake.scan.snapshot_info import facts_of
from frazil.lake.tables.properties import TOPIC_PREFIX
from frazil.lake.tables.record_rows import columns_of
from frazil.model.arrow import TABLES

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog
    from pyiceberg.table import Table
    from pyiceberg.table.snapshots import Snapshot

    from frazil.lake.scan.manifests import Manifests
    from frazil.lake.scan.table_info import TableInfo


NAMES = (*(name for name in TABLES if name != DEAD_LETTERS), DEAD_LETTERS)
"""In the order in which they are looked up."""


class LakeView:
    """Any thread may pin and refresh. Needs PyIceberg, and no Java."""

    def __init__(self, config: LakeConfig, data_folder: Path) -> None:
        self._config = config
        self._data_folder = data_folder
        self._lock = threading.Lock()
        self._catalog: Catalog | None = None
        self._manifests: Manifests | None = None
        self._tables: dict[str, Table] = {}
        self._topics: set[str] = set()
        """The tables of other topics that somebody has asked for."""
        self._view: TablesView | None = None
        self._is_closed = False

    def pin(self, topics: Collection[str] = ()) -> TablesView:
        """The tables as they were looked up last, and these of other topics. The first time that
        is now.

        `Unavailable` when they could never be looked up.
        """
        view = self._view
        if view is None or not view.tables.keys() >= set(topics):
            return self.refresh(topics)
        return view

    @property
    def latest(self) -> TablesView | None:
        """The tables as they were looked up last. Asks nobody and waits for nobody; None while
        they were never looked up."""
        return self._view

    def held(self, table: str, topic: str, partition: int) -> int:
        """The first offset that queries do not get from the lake; 0 while they get nothing."""
        view = self._view
        return 0 if view is None else view.held(table, topic, partition)

    def refresh(self, topics: Collection[str] = ()) -> TablesView:
        """Look the tables up, as far as the catalog names other metadata than before; from now on
        also these of other topics."""
        with self._opened() as catalog:
            self._topics.update(topics)
            self._view = self._looked_up(catalog, self._view)
            return self._view

    def topic_tables(self) -> list[str]:
        """The tables of other topics that the catalog has now."""
        from pyiceberg.exceptions import NoSuchNamespaceError

        with self._opened() as catalog:
            try:
                found = [] if catalog is None else catalog.list_tables(self._config.namespace)
            except NoSuchNamespaceError:
                return []
        return sorted(name for *_, name in found if name.startswith(TOPIC_PREFIX))

    def at(self, name: str, snapshot_id: int) -> TableView:
        """Another snapshot of a table."""
        now = self.pin().tables[name]
        if snapshot_id == now.snapshot_id:
            return now
        with self._lock, catalog_calls(self._config):
            table = self._tables.get(name)
            found = None if table is None else table.metadata.snapshot_by_id(snapshot_id)
            if table is None or found is None:
                raise Unknown(f"{name} has no snapshot {snapshot_id} any more")
            return self._pinned(name, table, found)

    def facts(self, name: str) -> TableInfo | None:
        """All that is known of a table, as it was looked up last; None when it is not there."""
        if name in self.topic_tables():
            self.pin([name])
        view = self.pin().tables.get(name)
        with self._lock:
            table = self._tables.get(name)
        if view is None or table is None:
            return None
        from frazil.lake.scan.table_info import facts_of_table

        return facts_of_table(table, view)

    def close(self, within_s: float = -1) -> bool:
        """Let the catalog go. False when somebody was asking it all the time: it is left then."""
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
        """The catalog, with the lock in hand; None while there is none."""
        with self._lock:
            if self._is_closed:
                raise Unavailable("the lake is closed")
            with catalog_calls(self._config):
                path = catalog_path(self._config, self._data_folder)
                # Opening would make it.
                if self._catalog is None and (path is None or path.exists()):
                    self._catalog = open_catalog(self._config, self._data_folder)
                yield self._catalog

    def _looked_up(self, catalog: Catalog | None, last: TablesView | None) -> TablesView:
        names = (*sorted(self._topics), *NAMES)
        if catalog is None:
            return TablesView(tables={name: _nothing(name) for name in names})
        known = {} if last is None else last.tables
        tables: dict[str, TableView] = {}
        is_new = False
        for name in names:
            found = self._load(catalog, name)
            before = self._tables.get(name)
            if found is None:
                tables[name] = _nothing(name)
                self._tables.pop(name, None)
            elif before is not None and before.metadata_location == found.metadata_location:
                tables[name] = known[name]
            else:
                tables[name] = self._pinned(name, found, found.current_snapshot())
                self._tables[name] = found
                is_new = True
        if is_new:
            self._forget()
        return TablesView(tables=tables)

    def _load(self, catalog: Catalog, name: str) -> Table | None:
        """The table as the catalog has it now; the one of before when nothing has changed."""
        from pyiceberg.exceptions import NoSuchNamespaceError, NoSuchTableError

        full_name = f"{self._config.namespace}.{name}"
        before = self._tables.get(name)
        if before is not None and _location(catalog, full_name) == before.metadata_location:
            return before
        try:
            return catalog.load_table(full_name)
        except (NoSuchTableError, NoSuchNamespaceError):
            return None

    def _pinned(self, name: str, table: Table, snapshot: Snapshot | None) -> TableView:
        from frazil.lake.scan.manifests import Manifests

        if self._manifests is None:
            self._manifests = Manifests()
        root = root_of(table)
        facts = tuple(facts_of(table.metadata))
        view = TableView(
            name=name,
            schema=_schema(name, table),
            root=root,
            snapshots=facts,
            tags={ref: found.snapshot_id for ref, found in table.metadata.refs.items()},
        )
        if snapshot is None:
            return view
        read = self._manifests.of(table, snapshot, root)
        offsets = next(f.offsets for f in facts if f.snapshot_id == snapshot.snapshot_id)
        return replace(
            view,
            snapshot_id=snapshot.snapshot_id,
            offsets=offsets or {},
            files=read.files,
            refusal=_refusal(table, read.deletes, read.foreign),
        )

    def _forget(self) -> None:
        pinned = [
            (table, snapshot)
            for table in self._tables.values()
            if (snapshot := table.current_snapshot()) is not None
        ]
        if self._manifests is not None:
            self._manifests.forget_all_but(pinned)


def _nothing(name: str) -> TableView:
    return TableView(name=name, schema=columns_of(name))


def _location(catalog: Catalog, full_name: str) -> str | None:
    """Where the metadata of a table is now, without reading it; None when only reading tells."""
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


def _schema(name: str, table: Table) -> pa.Schema:
    required = {field.name for field in table.schema().fields if field.required}
    columns = columns_of(name)
    return pa.schema([f if f.name in required else f.with_nullable(True) for f in columns])


def _refusal(table: Table, deletes: int, foreign: tuple[str, ...]) -> str | None:
    name = ".".join(table.name())
    if not plain_location(table.location()).startswith("/"):
        return (
            f"the files of {name} are at {table.location()}, and SQL here reads only those of this "
            "machine; ask Spark"
        )
    if deletes:
        return (
            f"rows of {name} were deleted by {deletes} delete files, which only Spark applies. "
            "Have it write the rest anew: its procedure rewrite_data_files does that, with the "
            "options 'rewrite-all' and 'remove-dangling-deletes'"
        )
    if foreign:
        return (
            f"{name} has {len(foreign)} files that are not Parquet below its own folder, such as "
            f"{foreign[0]}; have Spark write their rows anew: rewrite_data_files"
        )
    return None
