"""What a table has against what we want of it: what is to be added, and what cannot be.

A table may have been made by an older release, and people may have changed it. Fields are known by
their ids. What is missing is added, with our id, and can be null: Iceberg cannot add a column that
cannot, as older files have no value for it. Columns of others stay, as long as our rows can be
stored without them. Everything else is a complaint, which names the field and says how to mend it.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyiceberg.schema import Schema
from pyiceberg.types import IcebergType, ListType, MapType, NestedField, StructType

Fields = tuple[NestedField, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class MergedSchema:
    """A table's schema with our missing fields in it."""

    schema: Schema
    added: list[str]
    """Paths of the fields that were missing."""
    complaints: list[str]
    """Why our rows cannot be stored there. Then the schema is the table's own."""


def merge(table: str, wanted: Schema, found: Schema) -> MergedSchema:
    """Compare the schemas of a table, whose full name is for the complaints."""
    merger = _Merger(table, wanted)
    fields = merger.fields(wanted.columns, found.columns, "")
    if merger.complaints:
        return MergedSchema(schema=found, added=[], complaints=merger.complaints)
    schema = Schema(
        *fields, schema_id=found.schema_id, identifier_field_ids=found.identifier_field_ids
    )
    return MergedSchema(schema=schema, added=merger.added, complaints=[])


class _Merger:
    """Collects what is found on the way down."""

    def __init__(self, table: str, wanted: Schema) -> None:
        self._table = table
        self._names = {number: wanted.find_column_name(number) for number in wanted.field_ids}
        self.added: list[str] = []
        self.complaints: list[str] = []

    def fields(self, wanted: Fields, found: Fields, parent: str) -> list[NestedField]:
        """Those of a struct, or of the table itself: first what is there, then what was missing."""
        ours = {field.field_id: field for field in wanted}
        names = {field.name.lower(): field for field in wanted}
        merged = []
        for field in found:
            if field.field_id in ours:
                merged.append(self._ours(ours.pop(field.field_id), field, parent))
            else:
                self._check_foreign(field, names.get(field.name.lower()), parent)
                merged.append(field)
        for field in ours.values():
            self.added.append(parent + field.name)
            merged.append(_changed(field, field.field_type, required=False))
        return merged

    def _ours(self, wanted: NestedField, found: NestedField, parent: str) -> NestedField:
        path = parent + found.name
        if found.name != wanted.name:
            self._complain(
                f"field {found.field_id} is called {path}, and not {parent}{wanted.name}",
                f"RENAME COLUMN {path} TO {wanted.name}",
            )
        self._check_null(path, wanted.required, found.required)
        kind = self._type(wanted.field_type, found.field_type, path)
        return _changed(found, kind, required=found.required)

    def _check_foreign(self, found: NestedField, like: NestedField | None, parent: str) -> None:
        path = parent + found.name
        if like is not None:
            self._complain(
                f"column {path} has the id {found.field_id}, and ours of that name {like.field_id}",
                f"RENAME COLUMN {path} TO {found.name}_other",
            )
        elif found.field_id in self._names:
            self._complain(
                f"column {path} has the id {found.field_id} of {self._names[found.field_id]}",
                f"DROP COLUMN {path}",
            )
        elif found.required:
            self._complain(
                f"column {path} cannot be null, and our rows have no value for it",
                f"ALTER COLUMN {path} DROP NOT NULL",
            )

    def _type(self, wanted: IcebergType, found: IcebergType, path: str) -> IcebergType:
        if isinstance(wanted, StructType) and isinstance(found, StructType):
            return StructType(*self.fields(wanted.fields, found.fields, f"{path}."))
        if isinstance(wanted, ListType) and isinstance(found, ListType):
            element = self._inner(wanted.element_field, found.element_field, path)
            return ListType(found.element_id, element, found.element_required)
        if isinstance(wanted, MapType) and isinstance(found, MapType):
            key = self._inner(wanted.key_field, found.key_field, path)
            value = self._inner(wanted.value_field, found.value_field, path)
            return MapType(found.key_id, key, found.value_id, value, found.value_required)
        if wanted != found:
            self._complain(f"column {path} is {found}, and ours is {wanted}", None)
        return found

    def _inner(self, wanted: NestedField, found: NestedField, parent: str) -> IcebergType:
        path = f"{parent}.{found.name}"
        if wanted.field_id != found.field_id:
            self._complain(
                f"field {path} has the id {found.field_id}, and ours {wanted.field_id}", None
            )
        self._check_null(path, wanted.required, found.required)
        return self._type(wanted.field_type, found.field_type, path)

    def _check_null(self, path: str, wanted_required: bool, found_required: bool) -> None:
        if found_required and not wanted_required:
            self._complain(
                f"column {path} cannot be null, and ours can",
                f"ALTER COLUMN {path} DROP NOT NULL",
            )

    def _complain(self, what: str, statement: str | None) -> None:
        mend = f" (ALTER TABLE {self._table} {statement})" if statement else ""
        self.complaints.append(what + mend)


def _changed(field: NestedField, kind: IcebergType, *, required: bool) -> NestedField:
    return NestedField(field.field_id, field.name, kind, required, field.doc)
