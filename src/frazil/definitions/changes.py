"""What has to change so that a node has the definitions of a folder: `frazil apply`.

Keyed tables are created, and never changed or dropped: they have rows.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from graphlib import CycleError, TopologicalSorter
from typing import Literal

from frazil.definitions.parser import ParsedStatement, parse_statement, parse_statements
from frazil.definitions.statements import (
    KINDS,
    CreateTable,
    DefinitionKind,
    is_definition,
    kind_of,
    words_of,
)
from frazil.errors import Malformed
from frazil.results import tokens

AppliedKind = DefinitionKind | Literal["table"]
DefinitionKey = tuple[AppliedKind, str]
ORDER: tuple[AppliedKind, ...] = (KINDS[0], "table", *KINDS[1:])
"""Later ones refer to earlier ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DefinitionChange:
    """One step: the statement to send, and the texts before and after."""

    action: Literal["create", "replace", "drop"]
    kind: AppliedKind
    name: str
    statement: str
    before: str = ""
    after: str = ""

    @property
    def title(self) -> str:
        return f"{self.action} {words_of(self.kind).lower()} {self.name}"

    def diff(self) -> list[str]:
        """Return the lines that go and come, each with its sign."""
        lines = difflib.unified_diff(
            self.before.splitlines(), self.after.splitlines(), n=2, lineterm=""
        )
        return [line for line in lines if not line.startswith(("---", "+++", "@@"))]


def wanted_definitions(files: Mapping[str, str]) -> dict[DefinitionKey, ParsedStatement]:
    """Parse the texts of files, by path. `Malformed` if any is wrong, does something else than
    define, or if two define the same."""
    wanted: dict[DefinitionKey, ParsedStatement] = {}
    places: dict[DefinitionKey, str] = {}
    for path, text in files.items():
        try:
            statements = parse_statements(text)
        except Malformed as error:
            raise Malformed(f"{path}: {error}") from None
        for parsed in statements:
            statement = parsed.statement
            if not (is_definition(statement) or isinstance(statement, CreateTable)):
                raise Malformed(
                    f"{path}: {parsed.text[:60]} defines nothing; a folder of definitions has "
                    "CREATE statements only"
                )
            key: DefinitionKey = (
                "table" if isinstance(statement, CreateTable) else kind_of(statement),
                statement.name,
            )
            if key in wanted:
                name = f"{words_of(key[0]).lower()} {key[1]}"
                raise Malformed(f"{path} and {places[key]} both define {name}; remove one")
            wanted[key] = parsed
            places[key] = path
    return wanted


def changes_to(
    wanted: Mapping[DefinitionKey, ParsedStatement],
    existing: Mapping[DefinitionKey, str],
    *,
    prune: bool,
) -> list[DefinitionChange]:
    """Return the steps from `existing` texts to `wanted` ones, in an order that works: what others
    refer to is created first and dropped last. Without `prune` nothing is dropped."""
    changes = []
    for key in _ordered(wanted, {key: parsed.text for key, parsed in wanted.items()}):
        parsed, before = wanted[key], existing.get(key)
        if before is not None and isinstance(parsed.statement, CreateTable):
            _check_same_table(parsed.statement, before)
            continue
        if before == parsed.definition:
            continue
        changes.append(
            DefinitionChange(
                action="create" if before is None else "replace",
                kind=key[0],
                name=key[1],
                statement=parsed.definition if before is None else parsed.replacement,
                before=before or "",
                after=parsed.definition,
            )
        )
    gone = [key for key in existing if key not in wanted and key[0] != "table"] if prune else []
    for kind, name in reversed(_ordered(gone, existing)):
        changes.append(
            DefinitionChange(
                action="drop",
                kind=kind,
                name=name,
                statement=f"DROP {words_of(kind)} {name}",
                before=existing[kind, name],
            )
        )
    return changes


def _check_same_table(wanted: CreateTable, existing: str) -> None:
    """Raise `Malformed` if a table exists, and is not the one that is wanted."""
    found = parse_statement(existing).statement
    assert isinstance(found, CreateTable), "a node shows tables as CREATE TABLE"
    if _comparable(wanted) != _comparable(found):
        raise Malformed(
            f"table {wanted.name} is another one: {existing}. Tables that exist are not changed "
            "here; send ALTER TABLE, then write the new columns into the file"
        )


def _comparable(table: CreateTable) -> CreateTable:
    """Return a table without what makes no difference."""
    columns = tuple(
        replace(column, not_null=column.not_null and column.name not in table.key)
        for column in table.columns
    )
    return replace(table, if_not_exists=False, columns=columns)


def _ordered(
    keys: Iterable[DefinitionKey], texts: Mapping[DefinitionKey, str]
) -> list[DefinitionKey]:
    """Return the keys so that each comes after those that its text may name."""
    keys = sorted(keys, key=lambda key: (ORDER.index(key[0]), key[1]))
    ordered: list[DefinitionKey] = []
    for kind in ORDER:
        ordered += _by_reference([key for key in keys if key[0] == kind], texts)
    return ordered


def _by_reference(
    keys: Sequence[DefinitionKey], texts: Mapping[DefinitionKey, str]
) -> list[DefinitionKey]:
    names = {name: (kind, name) for kind, name in keys}
    graph = {
        key: [
            names[token.name]
            for token in tokens(texts[key])
            if token.name in names and token.name != key[1]
        ]
        for key in keys
    }
    try:
        return list(TopologicalSorter(graph).static_order())
    except CycleError as error:
        circle = " -> ".join(name for _, name in error.args[1])
        raise Malformed(f"definitions refer to each other in a circle: {circle}") from None
