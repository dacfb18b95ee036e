"""PromotedColumn: a column with the value of one attribute, beside the map that also has it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

PromotedOf = Literal["record", "resource", "scope"]
PromotedType = Literal["VARCHAR", "BIGINT", "DOUBLE", "BOOLEAN"]

MAPS: Mapping[PromotedOf, str] = MappingProxyType(
    {"record": "attributes", "resource": "resource_attributes", "scope": "scope_attributes"}
)
"""Whose attribute it is -> the map that has it."""
RECORDS = {"logs": "log", "spans": "span", "metrics": "data point"}
"""What a record of a table is called."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PromotedColumn:
    """A column of one table, and the attribute whose value it has."""

    name: str
    of: PromotedOf
    key: str
    kind: PromotedType

    @property
    def map_name(self) -> str:
        return MAPS[self.of]

    def comment(self, table: str) -> str:
        """Return where the value comes from, as a comment of the column."""
        owner = RECORDS[table] if self.of == "record" else self.of
        as_type = "" if self.kind == "VARCHAR" else f" as {self.kind}, null if it is none"
        return f"{owner} attribute {self.key}{as_type}"

    @property
    def source(self) -> str:
        """As in an error: `record attribute http.route as VARCHAR`."""
        return f"{self.of} attribute {self.key} as {self.kind}"


Promotions = Mapping[str, tuple[PromotedColumn, ...]]
"""Table -> its promoted columns. A missing table has none."""
NO_PROMOTIONS: Promotions = MappingProxyType({})
