"""Tables for tests: current ones, and ones with another schema."""

from __future__ import annotations

from pathlib import Path

from pyiceberg.catalog import Catalog
from pyiceberg.schema import Schema
from pyiceberg.table import Table

from frazil.lake.catalog.catalog import open_catalog
from frazil.lake.tables.schema import sort_order_of, spec_of
from frazil.lake.tables.tables import create_table, ensure_table
from frazil.model import MiB
from frazil.model.arrow import TABLES
from frazil.settings import LakeConfig

CONFIG = LakeConfig(driver_memory_bytes=512 * MiB)


def make(catalog: Catalog, name: str, schema: Schema) -> Table:
    """Create a table with another schema, like one of another release."""
    create_table(
        catalog,
        (CONFIG.namespace, name),
        schema=schema,
        spec=spec_of(name),
        order=sort_order_of(name),
        properties={},
    )
    return catalog.load_table((CONFIG.namespace, name))


def without(schema: Schema, *names: str) -> Schema:
    return Schema(*(field for field in schema.columns if field.name not in names))


def ensure_all(folder: Path) -> list[tuple[str, int]]:
    """Create or update all tables as a starting process does. Return ids and schema counts."""
    catalog = open_catalog(CONFIG, folder)
    tables = [ensure_table(catalog, CONFIG, name) for name in TABLES]
    catalog.close()
    return [(str(table.metadata.table_uuid), len(table.schemas())) for table in tables]
