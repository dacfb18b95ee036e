"""The first copy of tables: their rows as of one moment, in batches, in bounded memory.

A temporary slot names the moment: what commits before it is in its snapshot, the rest comes by the
stream. The tables are in the publication before, and the slot of the source exists before, so
nothing is between the two. A copy that is interrupted begins anew, as of another moment; an event
`t` tells that the rows before it do not count.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from frazil.connectors.contract import SourceBatch
from frazil.connectors.postgres.catalog import Catalog, PublishedTable
from frazil.connectors.postgres.changes import BATCH_RECORDS_MAX, RECORD_BYTES, TableStream
from frazil.connectors.postgres.envelope import EventEncoder, EventMoment
from frazil.connectors.postgres.pgoutput import Cells
from frazil.connectors.postgres.positions import PostgresPosition, column_marks, lsn_text
from frazil.connectors.postgres.replication import Slot
from frazil.errors import Malformed, TooLarge
from frazil.log import Record
from frazil.model import Clock

logger = logging.getLogger(__name__)

ESCAPE = re.compile(rb"\\(.)", re.DOTALL)
ESCAPES: Mapping[bytes, bytes] = {
    b"b": b"\b",
    b"f": b"\f",
    b"n": b"\n",
    b"r": b"\r",
    b"t": b"\t",
    b"v": b"\v",
}
NULL = rb"\N"
PROGRESS_NS = 10_000_000_000


@dataclass(frozen=True, slots=True)
class TableCopy:
    """A table to copy."""

    table: PublishedTable
    topic: str
    has_records: bool
    """Whether its topic has rows of an earlier copy, or of an earlier table of this name."""


def copy_tables(
    catalog: Catalog,
    copies: Sequence[TableCopy],
    slot: Slot,
    *,
    encoders: Mapping[int, EventEncoder],
    system: str,
    slot_name: str,
    clock: Clock,
    batch_bytes: int,
    batch_bytes_max: int,
    again: list[TableCopy],
) -> Iterator[tuple[TableStream | None, SourceBatch]]:
    """Yield batches of rows; with the last one of a table, the stream of changes to go on with.
    Tables whose rows of that moment are gone are put into `again`."""
    now_ms = clock.wall_ms()
    moment = EventMoment(now_ms * 1000, now_ms, None, 0, is_copy=True)
    with catalog.snapshot(slot.snapshot):
        for copy in copies:
            relation = copy.table.relation
            if not catalog.holds_rows(copy.table):
                again.append(copy)
                continue
            stream = TableStream(
                relation.schema,
                relation.table,
                copy.topic,
                relation.oid,
                (slot.consistent_lsn, 0),
                column_marks([column.name for column in relation.columns]),
            )
            position = PostgresPosition(
                system=system,
                slot=slot_name,
                lsn=lsn_text(slot.consistent_lsn),
                oid=relation.oid,
                columns=stream.marks,
            )
            done = PostgresPosition(
                system=system,
                slot=slot_name,
                lsn=position.lsn,
                end=position.lsn,
                oid=relation.oid,
                columns=stream.marks,
            )
            copied = 0
            for records, is_last in _batches(
                catalog,
                copy,
                encoders[relation.oid],
                moment,
                slot.consistent_lsn,
                clock,
                batch_bytes,
                batch_bytes_max,
            ):
                copied += len(records)
                now = done if is_last else _copying(position, copied)
                batch = SourceBatch(
                    records=records,
                    position=now.encode(),
                    topic=copy.topic,
                    stream=stream.name,
                )
                yield (stream if is_last else None), batch
            logger.info("copied %s: %d records", stream.name, copied)


def _copying(position: PostgresPosition, copied: int) -> PostgresPosition:
    return PostgresPosition(
        system=position.system,
        slot=position.slot,
        lsn=position.lsn,
        oid=position.oid,
        copied=copied,
        columns=position.columns,
    )


def _batches(
    catalog: Catalog,
    copy: TableCopy,
    encoder: EventEncoder,
    moment: EventMoment,
    lsn: int,
    clock: Clock,
    batch_bytes: int,
    batch_bytes_max: int,
) -> Iterator[tuple[list[Record], bool]]:
    """Yield the records of a table in batches, and whether each is the last one. There is always
    one: an empty table is told by an event `t`, so that its position is known."""
    width = len(encoder.columns)
    records: list[Record] = []
    size, told_ns = 0, clock.monotonic_ns()
    if copy.has_records:
        records.append(encoder.truncate(moment, lsn))
    for copied, line in enumerate(catalog.copy_lines(copy.table), 1):
        record = encoder.read(parse_line(line, width), moment, lsn)
        record_bytes = RECORD_BYTES + len(record.key or b"") + len(record.value or b"")
        if record_bytes > batch_bytes_max:
            raise TooLarge(
                f"a row of {copy.table.name} has {record_bytes} bytes as an event, and a batch "
                f"may have {batch_bytes_max}: raise log.batch_bytes_max, or leave the table out"
            )
        if records and (size + record_bytes > batch_bytes or len(records) >= BATCH_RECORDS_MAX):
            yield records, False
            records, size = [], 0
        records.append(record)
        size += record_bytes
        if clock.monotonic_ns() - told_ns > PROGRESS_NS:
            told_ns = clock.monotonic_ns()
            about = copy.table.rows_about
            logger.info("copying %s: %d rows of about %d", copy.table.name, copied, about)
    yield records or [encoder.truncate(moment, lsn)], True


def parse_line(line: bytes, width: int) -> Cells:
    """Return the values of a row in the text format of COPY."""
    cells: Cells = []
    for text in line.split(b"\t"):
        if text == NULL:
            cells.append(None)
        elif b"\\" in text:
            cells.append(ESCAPE.sub(_unescaped, text))
        else:
            cells.append(text)
    if width == 0 and cells == [b""]:
        return []
    if len(cells) != width:
        raise Malformed(f"COPY sent a row of {len(cells)} values for {width} columns")
    return cells


def _unescaped(found: re.Match[bytes]) -> bytes:
    return ESCAPES.get(found[1], found[1])
