"""The tables that a text can name: built-in, topics, keyed, of the lake, AS OF and changes."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from frazil.model.arrow import RECORDS
from frazil.query.sql.as_of import with_as_of
from frazil.query.sql.changes import with_changes
from frazil.query.sql.dialect import EngineText
from frazil.query.sql.entry_spans import VIEW as ENTRY_SPANS

LISTING = ("information_schema", "show")
"""Words of a text that may list tables."""
VIEW_NAMES = (
    *("gauges", "sums", "histograms", "exponential_histograms", "summaries"),
    ENTRY_SPANS,
)
"""Views that every node has."""


def tables_of(schemas: Mapping[str, pa.Schema], sql: EngineText) -> Mapping[str, pa.Schema]:
    """Return the schemas of all tables that a text can name."""
    if sql.topics:
        schemas = {**schemas, **dict.fromkeys(sql.topics, RECORDS)}
    if sql.tables:
        schemas = {**schemas, **lake_schemas(sql)}
    return with_changes(with_as_of(schemas, sql.as_ofs), sql.keyed, sql.changes)


def lake_schemas(sql: EngineText) -> dict[str, pa.Schema]:
    """Return the schemas of keyed tables and other tables of the lake that a text can name."""
    return {name: pa.ipc.read_schema(pa.py_buffer(ipc)) for name, ipc in sql.tables}
