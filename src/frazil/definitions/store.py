"""Definitions: one file per defined thing in the data folder; its text is the truth.

    definitions/<kind>/<name>.sql     written atomically: tmp, sync, rename, sync directory

A file that cannot be read is reported with its path, and the others work.
"""

from __future__ import annotations

import logging
import re
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from frazil.definitions.parser import ParsedStatement, parse_statement
from frazil.definitions.statements import (
    KINDS,
    Definition,
    DefinitionKind,
    is_definition,
    kind_of,
    words_of,
)
from frazil.definitions.token_reader import NAME_PATTERN
from frazil.disk import Disk, is_full, make_directories, write_whole
from frazil.errors import Conflict, Rejected, TooLarge, Unavailable, Unknown
from frazil.model import KiB

logger = logging.getLogger(__name__)

FOLDER = "definitions"
ENDING = ".sql"
COUNT_MAX = 1000
"""Definitions of one kind."""
FILE_BYTES_MAX = 256 * KiB
"""Larger files are reported as broken."""
_TABLES: tuple[DefinitionKind, ...] = ("view", "external_table")
"""Kinds that queries name like a table."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredDefinition:
    """One file. `statement` is None if it is broken, and `error` says why."""

    kind: DefinitionKind
    name: str
    text: str
    statement: Definition | None = None
    error: str | None = None


class Definitions:
    """The definitions of a data folder, in memory and as files. Any thread may read; changes are
    serialized. Files that are changed by hand count from the next start on."""

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self._lock = threading.Lock()
        self._all: Mapping[tuple[DefinitionKind, str], StoredDefinition] = MappingProxyType(
            {(found.kind, found.name): found for kind in KINDS for found in self._load(kind)}
        )
        self._by_kind = _by_kind(self._all)
        for found in self._all.values():
            if found.error is not None:
                logger.warning("a definition cannot be used", extra={"reason": found.error})

    def all(self, kind: DefinitionKind | None = None) -> list[StoredDefinition]:
        """Return all definitions, or those of one kind, by name."""
        found = [each for each in self._all.values() if kind in (None, each.kind)]
        return sorted(found, key=lambda each: (KINDS.index(each.kind), each.name))

    def of_kind(self, kind: DefinitionKind) -> tuple[StoredDefinition, ...]:
        """Return the definitions of one kind, in no order, without work: every query asks."""
        return self._by_kind[kind]

    def find(self, kind: DefinitionKind, name: str) -> StoredDefinition | None:
        """Return one definition, broken or not."""
        return self._all.get((kind, name))

    def get(self, kind: DefinitionKind, name: str) -> Definition:
        """Return what a definition says. `Unknown` if there is none, `Unavailable` if its file is
        broken."""
        found = self.find(kind, name)
        if found is None:
            known = ", ".join(each.name for each in self.all(kind)) or "none"
            word = words_of(kind).lower()
            raise Unknown(f"there is no {word} {name}; there are: {known}")
        if found.statement is None:
            raise Unavailable(f"{words_of(kind).lower()} {name} cannot be used: {found.error}")
        return found.statement

    def check_new(self, statement: Definition) -> None:
        """`Conflict` if the name is taken and the statement does not replace it."""
        kind, name = kind_of(statement), statement.name
        word = words_of(kind)
        if self.find(kind, name) is not None and not statement.or_replace:
            raise Conflict(
                f"{word.lower()} {name} already exists; write CREATE OR REPLACE {word}, or DROP "
                f"{word} {name}"
            )
        for other in _TABLES:
            if kind in _TABLES and other != kind and self.find(other, name) is not None:
                taken = words_of(other).lower()
                raise Conflict(f"{name} is the name of the {taken} {name}; choose another")
        if len(self.all(kind)) >= COUNT_MAX and self.find(kind, name) is None:
            raise TooLarge(f"there are {COUNT_MAX} of {word.lower()}, which is the limit")

    def put(self, parsed: ParsedStatement) -> StoredDefinition:
        """Store a definition. Durable, and seen by everyone, on return. Checks only names: whoever
        calls this has checked everything else."""
        statement = parsed.statement
        assert is_definition(statement)
        kind, name, text = kind_of(statement), statement.name, parsed.definition
        path = _path(kind, name)
        data = f"{text};\n".encode()
        if len(data) > FILE_BYTES_MAX:
            raise TooLarge(f"the definition has {len(data)} bytes; the limit is {FILE_BYTES_MAX}")
        stored = StoredDefinition(kind=kind, name=name, text=text, statement=statement)
        with self._lock:
            self.check_new(statement)
            try:
                make_directories(self._disk, f"{FOLDER}/{kind}")
                write_whole(self._disk, path, [data])
            except OSError as error:
                raise _failure(path, error) from error
            self._publish({**self._all, (kind, name): stored})
        return stored

    def drop(self, kind: DefinitionKind, name: str) -> None:
        """Remove a definition, also a broken one. `Unknown` if there is none."""
        path = _path(kind, name)
        with self._lock:
            if (kind, name) not in self._all:
                raise Unknown(f"there is no {words_of(kind).lower()} {name}")
            try:
                self._disk.unlink(path)
                self._disk.sync_directory(f"{FOLDER}/{kind}")
            except FileNotFoundError:
                pass  # removed by hand
            except OSError as error:
                raise _failure(path, error) from error
            self._publish({key: d for key, d in self._all.items() if key != (kind, name)})

    def _publish(self, changed: dict[tuple[DefinitionKind, str], StoredDefinition]) -> None:
        self._all = MappingProxyType(changed)
        self._by_kind = _by_kind(changed)

    def _load(self, kind: DefinitionKind) -> list[StoredDefinition]:
        names = [
            file.removesuffix(ENDING)
            for file in self._disk.list(f"{FOLDER}/{kind}")
            if file.endswith(ENDING)
        ]
        return [self._read(kind, name) for name in names if re.fullmatch(NAME_PATTERN, name)]

    def _read(self, kind: DefinitionKind, name: str) -> StoredDefinition:
        path = _path(kind, name)
        text = ""
        try:
            text = self._text(path)
            parsed = parse_statement(text)
            statement = parsed.statement
            if not is_definition(statement):
                raise Rejected("it does not define anything")
            if (kind_of(statement), statement.name) != (kind, name):
                raise Rejected(
                    f"it defines {words_of(kind_of(statement)).lower()} {statement.name}; rename "
                    "the file, or change the statement"
                )
        except (Rejected, OSError, UnicodeDecodeError) as error:
            why = f"{path}: {error}"
            return StoredDefinition(kind=kind, name=name, text=text, error=why)
        return StoredDefinition(kind=kind, name=name, text=parsed.definition, statement=statement)

    def _text(self, path: str) -> str:
        file = self._disk.open(path)
        try:
            if file.size() > FILE_BYTES_MAX:
                raise TooLarge(f"the file has more than {FILE_BYTES_MAX} bytes")
            return file.read(0, FILE_BYTES_MAX).decode()
        finally:
            file.close()


def _by_kind(
    found: Mapping[tuple[DefinitionKind, str], StoredDefinition],
) -> dict[DefinitionKind, tuple[StoredDefinition, ...]]:
    return {kind: tuple(each for each in found.values() if each.kind == kind) for kind in KINDS}


def _path(kind: DefinitionKind, name: str) -> str:
    assert re.fullmatch(NAME_PATTERN, name), "the parser lets no other name pass"
    return f"{FOLDER}/{kind}/{name}{ENDING}"


def _failure(path: str, error: OSError) -> Unavailable:
    why = "the disk is full" if is_full(error) else str(error)
    return Unavailable(f"{path} could not be changed: {why}")
