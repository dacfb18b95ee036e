"""Dead letters of keyed tables: records of a foreign Kafka that are no changes."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from frazil.disk import is_full
from frazil.errors import Overloaded, Unavailable
from frazil.lake.append.commit import TableChange, commit, data_file_of, next_offsets
from frazil.lake.files.object_store import open_store
from frazil.lake.files.parquet_schema import file_layout_of
from frazil.lake.files.writer import TableWriter, WrittenFile
from frazil.log import Record
from frazil.model import Clock, TopicPartition, arrow
from frazil.model.arrow import DeadLetter, ExportRequest, dead_letter_rows

if TYPE_CHECKING:
    import pyarrow as pa
    from pyiceberg.catalog import Catalog
    from pyiceberg.table import Table

DEAD_LETTERS = "dead_letters"


@dataclass(frozen=True, slots=True, kw_only=True)
class UnfitRecords:
    """Records of one partition that are no changes of its table."""

    partition: TopicPartition
    topic_id: str | None
    end: int
    """All of them are below this offset."""
    records: Sequence[tuple[Record, str]]
    """In order, each with the reason."""


def commit_letters(
    catalog: Catalog,
    table: Table,
    unfit: Sequence[UnfitRecords],
    *,
    appender: str,
    file_name: str,
    commit_id: str,
    clock: Clock,
) -> int:
    """Commit records as dead letters, without those that are there already. Returns how many are
    new. Raises what `commit` does."""
    known = next_offsets(table)
    new = [_after(each, known.get(each.partition, 0)) for each in unfit]
    new = [each for each in new if each.records]
    if not new:
        return 0
    change = TableChange(
        files=[data_file_of(file, table) for file in _write(table, new, file_name)],
        begins={each.partition: known.get(each.partition, 0) for each in new},
        ends={each.partition: each.end for each in new},
        appender=appender,
        commit_id=commit_id,
        identities={
            each.partition.topic: each.topic_id for each in new if each.topic_id is not None
        },
    )
    commit(catalog, ".".join(table.name()), change, clock=clock)
    return sum(len(each.records) for each in new)


def _after(unfit: UnfitRecords, begin: int) -> UnfitRecords:
    """Leave out records below an offset: an earlier round has committed them."""
    return replace(unfit, records=[each for each in unfit.records if each[0].offset >= begin])


def _write(table: Table, unfit: Sequence[UnfitRecords], file_name: str) -> list[WrittenFile]:
    store = open_store(table.location(), table.io)
    writer = TableWriter(store, file_layout_of(DEAD_LETTERS), file_name)
    with ExitStack() as undo:
        undo.callback(writer.discard)
        try:
            batches = [_rows(each) for each in unfit]
            writer.write(batches, sum(batch.nbytes for batch in batches))
            files = writer.sync()
        except OSError as error:
            kind = Overloaded if is_full(error) else Unavailable
            raise kind(f"dead letters were not written: {error}") from error
        undo.pop_all()
    return files


def _rows(unfit: UnfitRecords) -> pa.RecordBatch:
    topic, partition = unfit.partition
    letters, requests = [], []
    for record, reason in unfit.records:
        payload = record.key if record.value is None else record.value
        letters.append(
            DeadLetter(
                partition=partition,
                offset=record.offset,
                row=None,
                reason=reason,
                payload=payload or b"",
            )
        )
        requests.append(
            ExportRequest(
                partition=partition,
                offset=record.offset,
                ingest_time_ms=record.timestamp_ms,
                body=b"",
            )
        )
    return dead_letter_rows(topic, letters, requests, arrow.DEAD_LETTERS)
