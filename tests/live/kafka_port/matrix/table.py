"""The table of clients in docs/kafka.md."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

PAGE = Path(__file__).parents[4] / "docs" / "kafka.md"
BEGIN = "<!-- clients: written by python -m tests.live.kafka_port.matrix -->"
END = "<!-- end of clients -->"
GROUP_848, PLAIN, SCRAM = "group (KIP-848)", "TLS + PLAIN", "TLS + SCRAM-SHA-512"
COLUMNS = ("produce", "codecs", "group", GROUP_848, "transactions", "admin", PLAIN, SCRAM)
"""What is checked. A new column needs a check in `clients.py`."""
YES, NO, FAILED = "yes", "", "FAILED"
"""A cell: it was run; the client has no such thing, or nothing is run for it; it failed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A client, and what it has done."""

    client: str
    cells: Mapping[str, str]


def render(rows: list[Row]) -> str:
    """Return the table as Markdown."""
    lines = [["client", *COLUMNS], ["-" * 6, *("-" * len(each) for each in COLUMNS)]]
    lines += [[row.client, *(row.cells[each] for each in COLUMNS)] for row in rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def parse(page: str) -> list[Row]:
    """Return the rows of the table in a page."""
    table = page.split(BEGIN)[1].split(END)[0].strip().splitlines()
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in table]
    assert cells[0] == ["client", *COLUMNS], f"columns: {cells[0]}"
    return [
        Row(client=each[0], cells=dict(zip(COLUMNS, each[1:], strict=True))) for each in cells[2:]
    ]


def with_table(page: str, rows: list[Row]) -> str:
    """Return a page with the table between its markers."""
    before, rest = page.split(BEGIN)
    _, after = rest.split(END)
    return f"{before}{BEGIN}\n\n{render(rows)}\n{END}{after}"
