"""Changes how the files of a loaded table are written: sorted by columns, with bloom filters.

Both are Iceberg's own: a sort order and table properties, which other writers obey as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from frazil.errors import Malformed, Unknown
from frazil.lake.append.commit import APPENDER, repeat
from frazil.lake.catalog.catalog import catalog_calls
from frazil.lake.loaded.load_writer import BLOOM

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog
    from pyiceberg.table import Table

    from frazil.model import Clock
    from frazil.settings import LakeConfig

COLUMNS_MAX = 16


def cluster_by(
    catalog: Catalog, config: LakeConfig, name: str, columns: Sequence[str], *, clock: Clock
) -> None:
    """Have files sorted by these columns, ascending, from now on; without columns, not sorted."""
    from pyiceberg.table.sorting import NullOrder
    from pyiceberg.transforms import IdentityTransform

    def attempt(table: Table) -> None:
        _check(table, name, columns)
        with table.update_sort_order() as update:
            for column in columns:
                update.asc(column, IdentityTransform(), NullOrder.NULLS_LAST)

    _alter(catalog, config, name, attempt, clock)


def set_bloom(
    catalog: Catalog, config: LakeConfig, name: str, columns: Sequence[str], *, clock: Clock
) -> None:
    """Have these columns, and no others, a bloom filter in files written from now on."""

    def attempt(table: Table) -> None:
        _check(table, name, columns)
        before = {key for key in table.properties if key.startswith(BLOOM)}
        wanted = {f"{BLOOM}{column}": "true" for column in columns}
        with table.transaction() as transaction:
            if gone := before.difference(wanted):
                transaction.remove_properties(*sorted(gone))
            if wanted:
                transaction.set_properties(wanted)

    _alter(catalog, config, name, attempt, clock)


def _alter(catalog: Catalog, config: LakeConfig, name: str, attempt: object, clock: Clock) -> None:
    from pyiceberg.exceptions import NoSuchNamespaceError, NoSuchTableError

    with catalog_calls(config):
        try:
            repeat(catalog, f"{config.namespace}.{name}", attempt, clock)  # type: ignore[arg-type]
        except (NoSuchTableError, NoSuchNamespaceError):
            raise Unknown(f"there is no table {name}") from None


def _check(table: Table, name: str, columns: Sequence[str]) -> None:
    """Check that a table can be changed so."""
    if APPENDER in table.properties:
        raise Malformed(
            f"{name} is filled from the log; its order and bloom filters are fixed, see "
            "docs/schemas.md. CREATE TABLE … CLONE makes a copy that can be changed"
        )
    if len(columns) > COLUMNS_MAX or len(set(columns)) < len(columns):
        raise Malformed(f"name each column once, and at most {COLUMNS_MAX}")
    kinds = {field.name: field.field_type for field in table.schema().fields}
    for column in columns:
        if column not in kinds:
            raise Malformed(f"{name} has no column {column}; it has: {', '.join(kinds)}")
        if not kinds[column].is_primitive:
            raise Malformed(f"column {column} is {kinds[column]}; name one with a simple type")
