"""What the tables hold, against what must be there. Reads with PyIceberg, pyarrow and DuckDB.

Of every snapshot of every table: its files are there, and hold exactly the rows of all offsets
below those that its summary names, with every value as decoding the request gives it. Of the table:
its property says what the last summary says. In the end: that is all of the log, and all that was
promised.
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
from frazil.lake.config import LakeConfig
from frazil.log import Log
from frazil.model import Signal, SystemClock, arrow
from frazil.model.arrow import ExportRequest, dead_letter_rows
from tests.lake.rows import decoded, rows_of
from tests.torture.checker import Verdict
from tests.torture.lake.life import LOG_CONFIG
from tests.torture.lake.load import NOW_MS, PLACES, SIGNALS, body_of, promises

DEAD = "dead_letters"
TOPIC_OF = {Signal(signal).table: topic for topic, signal in SIGNALS.items()}
TABLES = (*TOPIC_OF, DEAD)

Place = tuple[str, int]
Rows = Counter[bytes]
"""Digests of rows, over all columns."""
Held = dict[Place, dict[int, Rows]]
"""What there is of each offset of each partition."""


@dataclass(slots=True)
class Truth:
    """What the log of one folder was given, at which offsets."""

    numbers: dict[Place, dict[int, int]] = field(
        default_factory=lambda: {place: {} for place in PLACES}
    )
    promised: set[tuple[Place, int]] = field(default_factory=set)
    _rows: dict[tuple[str, Place, int], Rows] = field(default_factory=dict)
    _files: dict[str, Held] = field(default_factory=dict)
    """Files never change, so each is read once, and looked for every time."""

    def learn(self, folder: Path, ledger: Path, verdict: Verdict) -> None:
        """From the ledger, and from the log itself: it may hold what nobody was promised."""
        for each in promises(ledger):
            place = (each.topic, each.partition)
            self._put(place, each.offset, each.number, verdict)
            self.promised.add((place, each.offset))
        with Log.open(
            RealDisk(folder), LOG_CONFIG, clock=SystemClock(), rand=SystemRandom()
        ) as log:
            known = {topic.name for topic in log.topics()}
            for place in PLACES:
                if place[0] not in known:
                    continue
                reader = log.reader(place[0], "earliest", partition=place[1])
                while batches := reader.read():
                    for record in (record for batch in batches for record in batch.records()):
                        self._put(place, record.offset, int(record.key or b"-1"), verdict)
                reader.close()

    def _put(self, place: Place, offset: int, number: int, verdict: Verdict) -> None:
        if self.numbers[place].setdefault(offset, number) != number:
            verdict.add("moved", f"{place} {offset} is {number} in the log, and was another")

    def end(self, place: Place) -> int:
        return max(self.numbers[place], default=-1) + 1

    def rows(self, table: str, place: Place, offset: int) -> Rows:
        """What one request must be in a table."""
        wanted = (table, place, offset)
        if wanted not in self._rows:
            number = self.numbers[place].get(offset)
            if number is None:
                return Counter()
            request = ExportRequest(
                partition=place[1],
                offset=offset,
                ingest_time_ms=NOW_MS + number,
                body=body_of(number),
            )
            signal = SIGNALS[place[0]]
            made, letters = decoded(signal, [request])
            dead = dead_letter_rows(place[0], letters, [request], arrow.DEAD_LETTERS)
            self._rows[Signal(signal).table, place, offset] = digests(made)
            self._rows[DEAD, place, offset] = digests(dead)
        return self._rows[wanted]

    def read(self, table: str, path: Path) -> Held:
        """What a file holds."""
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
    truth: Truth, folder: Path, ledger: Path, config: LakeConfig, *, is_whole: bool
) -> Verdict:
    """Look at everything. With `is_whole` nothing may be missing any more."""
    verdict = Verdict()
    truth.learn(folder, ledger, verdict)
    catalog = open_catalog(config, folder)
    try:
        for name in TABLES:
            try:
                _judge_table(truth, catalog, (config.namespace, name), is_whole, verdict)
            except NoSuchTableError:
                if is_whole:
                    verdict.add("lost", f"the table {name}")
            except Exception as error:  # noqa: BLE001 - every library has errors of its own
                verdict.add("untrue", f"{name} cannot be read: {type(error).__name__}: {error}")
    finally:
        catalog.close()
    return verdict


def _judge_table(
    truth: Truth, catalog: Catalog, name: tuple[str, str], is_whole: bool, verdict: Verdict
) -> None:
    table = catalog.load_table(name)
    ends: dict[int, dict[Place, int]] = {}
    for snapshot in table.metadata.snapshots:
        said = _offsets(snapshot.summary.get("frazil.offsets") if snapshot.summary else None)
        if said is None:  # somebody else's, who may not have changed what the table holds
            said = ends.get(snapshot.parent_snapshot_id or -1)
        if said is None:
            verdict.add("untrue", f"{name[1]}: nothing says how far {snapshot.snapshot_id} goes")
            continue
        ends[snapshot.snapshot_id] = said
        _judge_snapshot(truth, table, name[1], snapshot, said, verdict)
    current = table.metadata.current_snapshot_id
    held = ends.get(current, {}) if current is not None else {}
    said = _offsets(table.properties.get("frazil.next-offsets")) or {}
    if said != held:
        verdict.add("untrue", f"{name[1]} goes on at {said}, and its snapshot ends at {held}")
    if is_whole:
        _judge_end(truth, table, name[1], held, verdict)


def _offsets(text: str | None) -> dict[Place, int] | None:
    if text is None:
        return None
    found = json.loads(text)
    return {
        (topic, int(index)): end for topic, ends in found.items() for index, end in ends.items()
    }


def _judge_snapshot(
    truth: Truth,
    table: Table,
    name: str,
    snapshot: Snapshot,
    ends: dict[Place, int],
    verdict: Verdict,
) -> None:
    where = f"{name} snapshot {snapshot.sequence_number}"
    held: Held = defaultdict(dict)
    for file in _files(table, snapshot):
        path = _path(file)
        if not path.exists() or path.stat().st_size != file.file_size_in_bytes:
            verdict.add("lost", f"{where}: the file {path.name}")
            continue
        rows = truth.read(name, path)
        if sum(row.total() for each in rows.values() for row in each.values()) != file.record_count:
            verdict.add("untrue", f"{where}: the manifest counts other rows in {path.name}")
        for place, offsets in rows.items():
            for offset, found in offsets.items():
                held[place][offset] = held[place].get(offset, Counter()) + found
    for place in {*held, *ends}:
        _judge_partition(truth, name, place, held[place], ends.get(place, 0), where, verdict)


def _judge_partition(
    truth: Truth,
    table: str,
    place: Place,
    held: dict[int, Rows],
    end: int,
    where: str,
    verdict: Verdict,
) -> None:
    for offset in {*held, *range(end)}:
        found = held.get(offset, Counter())
        wanted = truth.rows(table, place, offset) if offset < end else Counter[bytes]()
        if found == wanted:
            continue
        at = f"{where}: {place[0]}/{place[1]} offset {offset}, which ends at {end}"
        missing, extra = wanted - found, found - wanted
        if missing:
            verdict.add("lost", f"{at}: {missing.total()} rows")
        known = truth.rows(table, place, offset)
        for digest, count in extra.items():
            kind = "duplicate" if digest in known and offset < end else "foreign"
            verdict.add(kind, f"{at}: {count} rows")


def _judge_end(
    truth: Truth, table: Table, name: str, ends: dict[Place, int], verdict: Verdict
) -> None:
    """All of the log is there. DuckDB counts as we do."""
    wanted = 0
    for place in PLACES:
        if name not in (DEAD, Signal(SIGNALS[place[0]]).table):
            continue
        end = truth.end(place)
        rows = sum(truth.rows(name, place, offset).total() for offset in range(end))
        wanted += rows
        if name != DEAD and ends.get(place, 0) != end:
            verdict.add("lost", f"{name} ends at {ends.get(place, 0)} of {place}, the log at {end}")
        for _, offset in (each for each in truth.promised if each[0] == place):
            if offset >= end:
                verdict.add("lost", f"{place} {offset} was promised")
    snapshot = table.current_snapshot()
    files = [] if snapshot is None else [str(_path(file)) for file in _files(table, snapshot)]
    if not files:
        found: tuple[int, int] | None = (0, 0)
    else:
        key = "_log_partition, _offset, _row" + (", topic" if name == DEAD else "")
        query = f"SELECT count(*), count(DISTINCT ({key})) FROM read_parquet(?)"
        with duckdb.connect() as database:
            found = database.execute(query, [files]).fetchone()
    if found != (wanted, wanted):
        verdict.add("untrue", f"DuckDB finds {found} rows in {name}, of {wanted}")


def _files(table: Table, snapshot: Snapshot) -> list[DataFile]:
    return [
        entry.data_file
        for manifest in snapshot.manifests(table.io)
        for entry in manifest.fetch_manifest_entry(table.io, discard_deleted=True)
    ]


def _path(file: DataFile) -> Path:
    return Path(unquote(urlsplit(file.file_path).path))
