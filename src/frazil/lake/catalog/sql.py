"""CachedSqlCatalog: parses each metadata file once, not in each of the four looks at a table that a
commit takes.

A metadata file never changes, and its name has a random id, so what was parsed is true as long as
the catalog names that file. The catalog itself is asked each time.
"""

from __future__ import annotations

from collections import OrderedDict

from pyiceberg.catalog import Catalog
from pyiceberg.catalog.sql import IcebergTables, SqlCatalog
from pyiceberg.table import Table
from pyiceberg.table.metadata import TableMetadata

KEPT_MAX = 16
"""Tables whose metadata is kept: up to a megabyte each, most of it snapshots."""


class CachedSqlCatalog(SqlCatalog):
    """Any thread may use it, as its base class."""

    def __init__(self, name: str, **properties: str) -> None:
        super().__init__(name, **properties)
        self._parsed: OrderedDict[str, TableMetadata] = OrderedDict()

    def _convert_orm_to_iceberg(self, orm_table: IcebergTables) -> Table:
        location = orm_table.metadata_location
        metadata = None if location is None else self._parsed.get(location)
        if location is None or metadata is None:
            table = super()._convert_orm_to_iceberg(orm_table)
        else:
            table = Table(
                identifier=(
                    *Catalog.identifier_to_tuple(orm_table.table_namespace),
                    orm_table.table_name,
                ),
                metadata=metadata,
                metadata_location=location,
                io=self._load_file_io(metadata.properties, location),
                catalog=self,
            )
        self._keep(table)
        return table

    def _keep(self, table: Table) -> None:
        self._parsed.pop(table.metadata_location, None)
        self._parsed[table.metadata_location] = table.metadata
        if len(self._parsed) > KEPT_MAX:
            self._parsed.popitem(last=False)
