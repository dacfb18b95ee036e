"""Options of `CREATE SOURCE … TYPE postgres`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from frazil.errors import Malformed

SLOT_NAME = re.compile(r"[a-z0-9_]{1,63}", re.ASCII)
NAME_BYTES_MAX = 63
TABLES = "public.*"
TABLES_MAX = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class PostgresOptions:
    """What a source reads, and by which slot and publication."""

    tables: str | tuple[str, ...] = TABLES
    """Tables as schema.table, with * for any characters; several with commas between, or a list."""
    slot: str = ""
    """Name of the replication slot; empty: frazil_ and the name of the source. Another name begins
    a new copy of all tables."""
    publication: str = ""
    """Name of the publication; empty: that of the slot. Created, with the tables, if there is
    none."""
    rename: Literal["stop", "add"] = "stop"
    """When a column goes and another comes in one change, which may be a rename: stop the source,
    or take them for a column that was dropped and one that was added."""

    def __post_init__(self) -> None:
        if self.slot and not SLOT_NAME.fullmatch(self.slot):
            raise Malformed(
                f"SLOT {self.slot!r} is no name of a slot: use 1 to 63 of a-z, 0-9 and _"
            )
        if len(self.publication.encode()) > NAME_BYTES_MAX:
            raise Malformed(f"PUBLICATION {self.publication!r} has more than 63 bytes")
        if not 0 < len(self.patterns) <= TABLES_MAX:
            raise Malformed(f"TABLES names {len(self.patterns)} patterns; 1 to {TABLES_MAX} do")
        for pattern in self.patterns:
            if pattern.count(".") != 1 or pattern.startswith(".") or pattern.endswith("."):
                raise Malformed(f"TABLES: {pattern!r} is not of the form schema.table")

    @property
    def patterns(self) -> tuple[str, ...]:
        given = self.tables.split(",") if isinstance(self.tables, str) else self.tables
        return tuple(pattern.strip() for pattern in given if pattern.strip())

    def wants(self, schema: str, table: str) -> bool:
        """Whether a pattern matches a table."""
        return any(
            _matches(wanted, schema) and _matches(name, table)
            for wanted, name in (pattern.split(".") for pattern in self.patterns)
        )


def _matches(pattern: str, name: str) -> bool:
    parts = [re.escape(part) for part in pattern.split("*")]
    return re.fullmatch(".*".join(parts), name, re.DOTALL) is not None
