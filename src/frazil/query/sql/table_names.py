"""Tables that a text can name: always there, or of topics, or of other times."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from frazil.model.arrow import RECORDS
from frazil.query.sql.as_of import with_as_of
from frazil.query.sql.dialect import EngineText


def tables_of(schemas: Mapping[str, pa.Schema], spelled: EngineText) -> Mapping[str, pa.Schema]:
    """The tables that a text can name, beside those that are always there."""
    if spelled.topics:
        schemas = {**schemas, **dict.fromkeys(spelled.topics, RECORDS)}
    return with_as_of(schemas, spelled.as_ofs)
