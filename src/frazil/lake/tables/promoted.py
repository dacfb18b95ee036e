"""Promoted columns of a table: which it has, by field id, and how it gets more.

A property of the table says what each is promoted from. The table decides what is written: every
appender and every compaction fills all promoted columns that it has, whatever its own settings are.
So two nodes with different settings write the same columns.

Field ids are the next ones of the table, as Iceberg takes them for columns of users. The property
keeps them: a column that was dropped comes back with its id, and no other column gets that.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from frazil.model import PromotedColumn

if TYPE_CHECKING:
    from pyiceberg.schema import Schema
    from pyiceberg.table import Table
    from pyiceberg.types import NestedField

PROPERTY = "frazil.promoted"
BOUNDS = {"VARCHAR": "truncate(64)", "BIGINT": "full"}
"""Type of a promoted column -> how much of its bounds a manifest holds. Others prune nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PromotedField:
    """A promoted column of a table."""

    column: PromotedColumn
    field_id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PromotedChange:
    """What a table needs to have the promoted columns of the settings."""

    fields: tuple[NestedField, ...] = ()
    """Columns to add."""
    properties: Mapping[str, str]
    problems: tuple[str, ...] = ()
    """Why they cannot be added."""


def promoted_fields(table: Table) -> tuple[PromotedField, ...]:
    """Return the promoted columns that a table has now."""
    schema = table.schema()
    return tuple(each for each in _recorded(table) if _is_in(schema, each))


def _recorded(table: Table) -> list[PromotedField]:
    """Return all promoted columns that a table ever had."""
    return [
        PromotedField(
            column=PromotedColumn(
                name=each["name"], of=each["of"], key=each["key"], kind=each["type"]
            ),
            field_id=each["id"],
        )
        for each in json.loads(table.properties.get(PROPERTY, "[]"))
    ]


def _is_in(schema: Schema, field: PromotedField) -> bool:
    return any(
        found.field_id == field.field_id
        and found.name == field.column.name
        and found.field_type == _type(field.column)
        for found in schema.fields
    )


def promoted_change(
    full_name: str, name: str, table: Table, schema: Schema, columns: Sequence[PromotedColumn]
) -> PromotedChange:
    """Return what must be added to `schema`, the one that the table is about to get."""
    from pyiceberg.types import NestedField

    recorded = _recorded(table)
    next_id = max(table.metadata.last_column_id, schema.highest_field_id) + 1
    problems: list[str] = []
    added: list[PromotedField] = []
    for column in columns:
        known = next((each for each in recorded if each.column == column), None)
        if known is not None and _is_in(schema, known):
            continue
        problem = _problem(full_name, table, schema, column, recorded)
        if problem is not None:
            problems.append(problem)
        elif known is not None:
            added.append(known)
        else:
            added.append(PromotedField(column=column, field_id=next_id + len(added)))
    fields = [
        NestedField(
            each.field_id,
            each.column.name,
            _type(each.column),
            required=False,
            doc=each.column.comment(name),
        )
        for each in added
    ]
    return PromotedChange(
        fields=tuple(fields),
        properties=_properties(dict.fromkeys([*recorded, *added]), added),
        problems=tuple(problems),
    )


def _problem(
    full_name: str,
    table: Table,
    schema: Schema,
    column: PromotedColumn,
    recorded: Sequence[PromotedField],
) -> str | None:
    """Return why a column cannot be added, and what to do."""
    other = "set column to another name in the rule of promote"
    ids = {field.field_id for field in schema.fields}
    names = {field.name.lower() for field in schema.fields}
    for each in recorded:
        if each.column.name == column.name and each.column != column:
            return (
                f"column {column.name} is the {each.column.source} in {full_name}, but promote "
                f"has it for the {column.source}; {other}, or use the same rule again"
            )
        if each.column == column and each.field_id in ids:
            return f"its column {column.name} was renamed or got another type; {other}"
    if column.name in names:
        return f"it has a column {column.name} that was not promoted; {other}"
    past = {field.name.lower() for each in table.schemas().values() for field in each.fields}
    if column.name in past.difference(each.column.name for each in recorded):
        return f"it had a column {column.name}, which older files still have; {other}"
    return None


def _properties(
    recorded: Iterable[PromotedField], added: Sequence[PromotedField]
) -> dict[str, str]:
    if not added:
        return {}
    entries: list[dict[str, Any]] = [
        {
            "id": each.field_id,
            "name": each.column.name,
            "of": each.column.of,
            "key": each.column.key,
            "type": each.column.kind,
        }
        for each in recorded
    ]
    modes = {
        f"write.metadata.metrics.column.{each.column.name}": BOUNDS[each.column.kind]
        for each in added
        if each.column.kind in BOUNDS
    }
    return {PROPERTY: json.dumps(entries), **modes}


def _type(column: PromotedColumn) -> Any:
    from frazil.lake.tables.schema import PRIMITIVES
    from frazil.model.arrow import ARROW_TYPES

    return PRIMITIVES[ARROW_TYPES[column.kind]]
