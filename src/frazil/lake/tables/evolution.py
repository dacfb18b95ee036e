"""Merge the schema of an existing table with by_id.

A table may come from an older release, or users may have altered it. Fields are matched by id.
Missing fields are added with our id, as optional: Iceberg cannot add a required column, because
older files have no value for it. Foreign columns stay if they are optional. Any other difference is
a problem, reported with the field and the statement that repairs it.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyiceberg.schema import Schema
from pyiceberg.types import IcebergType, ListType, MapType, NestedField, StructType

Fields = tuple[NestedField, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class MergedSchema:
    """A table's schema with our missing fields added."""

    schema: Schema
    added: list[str]
    """Paths of the missing fields."""
    problems: list[str]
    """Why our rows do not fit. If there are any, `schema` is unchanged."""


def merge(table: str, expected: Schema, actual: Schema) -> MergedSchema:
    """Merge our schema into the table's. `table` is the full name used in problem texts."""
    merger = _Merger(table, expected)
    fields = merger.fields(expected.columns, actual.columns, "")
    if merger.problems:
        return MergedSchema(schema=actual, added=[], problems=merger.problems)
    schema = Schema(
        *fields, schema_id=actual.schema_id, identifier_field_ids=actual.identifier_field_ids
    )
    return MergedSchema(schema=schema, added=merger.added, problems=[])


class _Merger:
    """Collects added fields and problems while it walks both schemas."""

    def __init__(self, table: str, expected: Schema) -> None:
        self._table = table
        self._names = {number: expected.find_column_name(number) for number in expected.field_ids}
        self.added: list[str] = []
        self.problems: list[str] = []

    def fields(self, expected: Fields, actual: Fields, parent: str) -> list[NestedField]:
        """Return the fields of a struct or table: existing fields first, then added ones."""
        by_id = {field.field_id: field for field in expected}
        names = {field.name.lower(): field for field in expected}
        merged = []
        for field in actual:
            if field.field_id in by_id:
                merged.append(self._merged(by_id.pop(field.field_id), field, parent))
            else:
                self._check_foreign(field, names.get(field.name.lower()), parent)
                merged.append(field)
        for field in by_id.values():
            self.added.append(parent + field.name)
            merged.append(_changed(field, field.field_type, required=False))
        return merged

    def _merged(self, expected: NestedField, actual: NestedField, parent: str) -> NestedField:
        path = parent + actual.name
        if actual.name != expected.name:
            self._report(
                f"field {actual.field_id} is named {path}, expected {parent}{expected.name}",
                f"RENAME COLUMN {path} TO {expected.name}",
            )
        self._check_null(path, expected.required, actual.required)
        kind = self._type(expected.field_type, actual.field_type, path)
        return _changed(actual, kind, required=actual.required)

    def _check_foreign(self, actual: NestedField, like: NestedField | None, parent: str) -> None:
        path = parent + actual.name
        if like is not None:
            self._report(
                f"column {path} has id {actual.field_id}, expected {like.field_id}",
                f"RENAME COLUMN {path} TO {actual.name}_other",
            )
        elif actual.field_id in self._names:
            self._report(
                f"column {path} has id {actual.field_id}, which belongs to "
                f"{self._names[actual.field_id]}",
                f"DROP COLUMN {path}",
            )
        elif actual.required:
            self._report(
                f"column {path} is required, but our rows have no value for it",
                f"ALTER COLUMN {path} DROP NOT NULL",
            )

    def _type(self, expected: IcebergType, actual: IcebergType, path: str) -> IcebergType:
        if isinstance(expected, StructType) and isinstance(actual, StructType):
            return StructType(*self.fields(expected.fields, actual.fields, f"{path}."))
        if isinstance(expected, ListType) and isinstance(actual, ListType):
            element = self._inner(expected.element_field, actual.element_field, path)
            return ListType(actual.element_id, element, actual.element_required)
        if isinstance(expected, MapType) and isinstance(actual, MapType):
            key = self._inner(expected.key_field, actual.key_field, path)
            value = self._inner(expected.value_field, actual.value_field, path)
            return MapType(actual.key_id, key, actual.value_id, value, actual.value_required)
        if expected != actual:
            self._report(f"column {path} is {actual}, expected {expected}", None)
        return actual

    def _inner(self, expected: NestedField, actual: NestedField, parent: str) -> IcebergType:
        path = f"{parent}.{actual.name}"
        if expected.field_id != actual.field_id:
            self._report(
                f"field {path} has id {actual.field_id}, expected {expected.field_id}", None
            )
        self._check_null(path, expected.required, actual.required)
        return self._type(expected.field_type, actual.field_type, path)

    def _check_null(self, path: str, expected_required: bool, actual_required: bool) -> None:
        if actual_required and not expected_required:
            self._report(
                f"column {path} is required, expected optional",
                f"ALTER COLUMN {path} DROP NOT NULL",
            )

    def _report(self, what: str, statement: str | None) -> None:
        repair = f" (ALTER TABLE {self._table} {statement})" if statement else ""
        self.problems.append(what + repair)


def _changed(field: NestedField, kind: IcebergType, *, required: bool) -> NestedField:
    return NestedField(field.field_id, field.name, kind, required, field.doc)
