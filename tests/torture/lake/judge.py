"""Compares the tables with the log. Reads with PyIceberg, pyarrow and DuckDB.

For every snapshot: its files exist and hold exactly the rows of all offsets below the ends in its
summary, with the values that decoding the requests gives. For every table: its property equals the
last summary. At the end: the tables hold all of the log and all acknowledged requests.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from random import SystemRandom
from urllib.parse import unquote, urlsplit

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import NoSuchTableError
from pyiceberg.manifest import DataFile
from pyiceberg.table import Table
from pyiceberg.table.snapshots import Snapshot

from frazil.disk import RealDisk
from frazil.lake.catalog.catalog import open_catalog
from frazil.log import Log
from frazil.model import Signal, SystemClock, arrow
from frazil.model.arrow import ExportRequest, dead_letter_rows
from frazil.settings import LakeConfig
from tests.lake.rows import decoded, rows_of
from tests.torture.checker import Verdict
from tests.torture.lake.life import LOG_CONFIG
from tests.torture.lake.load import NOW_MS, SIGNALS, TOPIC_PARTITIONS, acknowledged, body_of

DEAD = "dead_letters"
TOPIC_OF = {Signal(signal).table: topic for topic, signal in SIGNALS.items()}
TABLES = (*TOPIC_OF, DEAD)

Partition = tuple[str, int]
Rows = Counter[bytes]
"""Digests of rows, over all columns."""
Held = dict[Partition, dict[int, Rows]]
"""Partition -> offset -> rows in the table."""


@dataclass(slots=True)
class LogContents:
    """The requests in the log of one folder, by partition and offset."""

    numbers: dict[Partition, dict[int, int]] = field(
        default_factory=lambda: {partition: {} for partition in TOPIC_PARTITIONS}
    )
    acknowledged: set[tuple[Partition, int]] = field(default_factory=set)
    _rows: dict[tuple[str, Partition, int], Rows] = field(default_factory=dict)
    _files: dict[str, Held] = field(default_factory=dict)
    """Data files by path: they are immutable, so each is read once."""

    def learn(self, folder: Path, ledger: Path, verdict: Verdict) -> None:
        """Read the ledger and the log, which may hold unacknowledged requests, too."""
        for request in acknowledged(ledger):
            partition = (request.topic, request.partition)
            self._put(partition, request.offset, request.number, verdict)
            self.acknowledged.add((partition, request.offset))
        with Log.open(
            RealDisk(folder), LOG_CONFIG, clock=SystemClock(), rand=SystemRandom()
        ) as log:
            known = {topic.name for topic in log.topics()}
            for partition in TOPIC_PARTITIONS:
                if partition[0] not in known:
                    continue
                reader = log.reader(partition[0], "earliest", partition=partition[1])
                while batches := reader.read():
                    for record in (record for batch in batches for record in batch.records()):
                        self._put(partition, record.offset, int(record.key or b"-1"), verdict)
                reader.close()

    def _put(self, partition: Partition, offset: int, number: int, verdict: Verdict) -> None:
        if self.numbers[partition].setdefault(offset, number) != number:
            verdict.add("moved", f"{partition} {offset} is {number} in the log, but was another")

    def end(self, partition: Partition) -> int:
        return max(self.numbers[partition], default=-1) + 1

    def rows(self, table: str, partition: Partition, offset: int) -> Rows:
        """Return the rows of a table that one request must give."""
        key = (table, partition, offset)
        if key not in self._rows:
            number = self.numbers[partition].get(offset)
            if number is None:
                return Counter()
            request = ExportRequest(
                partition=partition[1],
                offset=offset,
                ingest_time_ms=NOW_MS + number,
                body=body_of(number),
            )
            signal = SIGNALS[partition[0]]
            made, letters = decoded(signal, [request])
            dead = dead_letter_rows(partition[0], letters, [request], arrow.DEAD_LETTERS)
            self._rows[Signal(signal).table, partition, offset] = digests(made)
            self._rows[DEAD, partition, offset] = digests(dead)
        return self._rows[key]

    def read(self, table: str, path: Path) -> Held:
        """Return the rows of a data file."""
        held = self._files.get(str(path))
        if held is None:
            found = pq.ParquetFile(path, page_checksum_verification=True).read()
            held = defaultdict(dict)
            topics = found["topic"].to_pylist() if table == DEAD else [TOPIC_OF[table]] * len(found)
            parts, offsets = found["_log_partition"].to_pylist(), found["_offset"].to_pylist()
            for topic, part, offset, digest in zip(
                topics, parts, offsets, _digests(found), strict=True
            ):
                held[topic, part].setdefault(offset, Counter())[digest] += 1
            self._files[str(path)] = held
        return held


def digests(rows: pa.RecordBatch | pa.Table) -> Rows:
    return Counter(_digests(rows))


def _digests(rows: pa.RecordBatch | pa.Table) -> list[bytes]:
    return [blake2b(row.encode(), digest_size=12).digest() for row in rows_of(rows)]


def judge(
    contents: LogContents, folder: Path, ledger: Path, config: LakeConfig, *, is_whole: bool
) -> Verdict:
    """Check all snapshots of all tables. With `is_whole` no row may be missing."""
    verdict = Verdict()
    contents.learn(folder, ledger, verdict)
    catalog = open_catalog(config, folder)
    try:
        for name in TABLES:
            try:
                _judge_table(contents, catalog, (config.namespace, name), is_whole, verdict)
            except NoSuchTableError:
                if is_whole:
                    verdict.add("lost", f"the table {name}")
            except Exception as error:  # noqa: BLE001 - each library has its own errors
                verdict.add("untrue", f"{name} cannot be read: {type(error).__name__}: {error}")
    finally:
        catalog.close()
    return verdict


def _judge_table(
    contents: LogContents, catalog: Catalog, name: tuple[str, str], is_whole: bool, verdict: Verdict
) -> None:
    table = catalog.load_table(name)
    ends: dict[int, dict[Partition, int]] = {}
    for snapshot in table.metadata.snapshots:
        snapshot_ends = _offsets(
            snapshot.summary.get("frazil.offsets") if snapshot.summary else None
        )
        if snapshot_ends is None:  # a snapshot of another writer, which must not change the rows
            snapshot_ends = ends.get(snapshot.parent_snapshot_id or -1)
        if snapshot_ends is None:
            verdict.add("untrue", f"{name[1]}: snapshot {snapshot.snapshot_id} has no offsets")
            continue
        ends[snapshot.snapshot_id] = snapshot_ends
        _judge_snapshot(contents, table, name[1], snapshot, snapshot_ends, verdict)
    current = table.metadata.current_snapshot_id
    held = ends.get(current, {}) if current is not None else {}
    next_offsets = _offsets(table.properties.get("frazil.next-offsets")) or {}
    if next_offsets != held:
        verdict.add(
            "untrue", f"{name[1]} continues at {next_offsets}, but its snapshot ends at {held}"
        )
    if is_whole:
        _judge_end(contents, table, name[1], held, verdict)


def _offsets(text: str | None) -> dict[Partition, int] | None:
    if text is None:
        return None
    found = json.loads(text)
    return {
        (topic, int(index)): end for topic, ends in found.items() for index, end in ends.items()
    }


def _judge_snapshot(
    contents: LogContents,
    table: Table,
    name: str,
    snapshot: Snapshot,
    ends: dict[Partition, int],
    verdict: Verdict,
) -> None:
    where = f"{name} snapshot {snapshot.sequence_number}"
    held: Held = defaultdict(dict)
    for file in _files(table, snapshot):
        path = _path(file)
        if not path.exists() or path.stat().st_size != file.file_size_in_bytes:
            verdict.add("lost", f"{where}: the file {path.name}")
            continue
        rows = contents.read(name, path)
        if sum(row.total() for each in rows.values() for row in each.values()) != file.record_count:
            verdict.add("untrue", f"{where}: the manifest has a wrong row count for {path.name}")
        for partition, offsets in rows.items():
            for offset, found in offsets.items():
                held[partition][offset] = held[partition].get(offset, Counter()) + found
    for partition in {*held, *ends}:
        _judge_partition(
            contents, name, partition, held[partition], ends.get(partition, 0), where, verdict
        )


def _judge_partition(
    contents: LogContents,
    table: str,
    partition: Partition,
    held: dict[int, Rows],
    end: int,
    where: str,
    verdict: Verdict,
) -> None:
    for offset in {*held, *range(end)}:
        found = held.get(offset, Counter())
        expected = contents.rows(table, partition, offset) if offset < end else Counter[bytes]()
        if found == expected:
            continue
        at = f"{where}: {partition[0]}/{partition[1]} offset {offset}, end {end}"
        missing, extra = expected - found, found - expected
        if missing:
            verdict.add("lost", f"{at}: {missing.total()} rows")
        known = contents.rows(table, partition, offset)
        for digest, count in extra.items():
            kind = "duplicate" if digest in known and offset < end else "foreign"
            verdict.add(kind, f"{at}: {count} rows")


def _judge_end(
    contents: LogContents, table: Table, name: str, ends: dict[Partition, int], verdict: Verdict
) -> None:
    """Check that the table holds all of the log, and that DuckDB counts the same rows."""
    expected = 0
    for partition in TOPIC_PARTITIONS:
        if name not in (DEAD, Signal(SIGNALS[partition[0]]).table):
            continue
        end = contents.end(partition)
        rows = sum(contents.rows(name, partition, offset).total() for offset in range(end))
        expected += rows
        table_end = ends.get(partition, 0)
        if name != DEAD and table_end != end:
            verdict.add("lost", f"{name} ends at {table_end} of {partition}, the log at {end}")
        for source, offset in contents.acknowledged:
            if source == partition and offset >= end:
                verdict.add("lost", f"{partition} {offset} was acknowledged")
    snapshot = table.current_snapshot()
    files = [] if snapshot is None else [str(_path(file)) for file in _files(table, snapshot)]
    if not files:
        found: tuple[int, int] | None = (0, 0)
    else:
        key = "_log_partition, _offset, _row" + (", topic" if name == DEAD else "")
        query = f"SELECT count(*), count(DISTINCT ({key})) FROM read_parquet(?)"
        with duckdb.connect() as database:
            found = database.execute(query, [files]).fetchone()
    if found != (expected, expected):
        verdict.add("untrue", f"DuckDB finds {found} rows in {name}, expected {expected}")


def _files(table: Table, snapshot: Snapshot) -> list[DataFile]:
    return [
        entry.data_file
        for manifest in snapshot.manifests(table.io)
        for entry in manifest.fetch_manifest_entry(table.io, discard_deleted=True)
    ]


def _path(file: DataFile) -> Path:
    return Path(unquote(urlsplit(file.file_path).path))
