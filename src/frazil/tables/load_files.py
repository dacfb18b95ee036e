"""TableLoads: which files a keyed table was loaded from, and the load that is being appended.

    tables/<name>/loads/ledger.ckpt      all files that were loaded or skipped
                       /pending.ckpt     a load that has begun to append, until all is in the log
                       /<load>/…         its rows, and those of loads that are still being read

A load begins with `pending.ckpt`: from then on it is finished, whatever is killed when. How far it
is, the log knows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from uuid import UUID

import msgspec
import pyarrow as pa

from frazil.disk import Disk, make_directories, read_checkpoint, write_checkpoint
from frazil.errors import Corrupt
from frazil.model.arrow import LEDGER_SCHEMA, LedgerEntry, with_entries
from frazil.tables.definition_file import LOADS_FOLDER, remove_folder, table_folder

LEDGER_NAME, LEDGER_KIND = "ledger.ckpt", b"KLED"
PENDING_NAME, PENDING_KIND = "pending.ckpt", b"KLPE"
VERSION = 1
LEDGER_HINT = "Restore the file from a copy, or remove it: then all files count as new."
PENDING_HINT = "Remove the file to give up the rest of the load; its files can be loaded again."


class PendingLoad(msgspec.Struct, frozen=True, kw_only=True):
    """A load whose rows are being appended."""

    load_id: str
    """32 hexadecimal digits: its name in positions, in the ledger, and of its folder."""
    table_id: UUID
    after: str | None
    """The last load in the ledger when this one began."""
    time_ms: int
    staged: tuple[str, ...]
    """Its files of rows, in order. Each batch in them is a portion; portions are numbered."""
    last_portions: dict[int, int]
    """The last portion with rows of each partition that has some."""
    entries: tuple[LedgerEntry, ...]


class TableLoads:
    """The files of one table. One thread at a time changes them."""

    def __init__(self, disk: Disk, table: str) -> None:
        self._disk = disk
        self._folder = f"{table_folder(table)}/{LOADS_FOLDER}"

    def ledger(self) -> pa.Table:
        """Return all files, in the order of their loads. Raises `Corrupt` if it is damaged."""
        path = f"{self._folder}/{LEDGER_NAME}"
        body = read_checkpoint(self._disk, path, LEDGER_KIND, VERSION, LEDGER_HINT)
        if body is None:
            return LEDGER_SCHEMA.empty_table()
        with pa.ipc.open_stream(body) as stream:
            return stream.read_all()

    def pending(self) -> PendingLoad | None:
        """Return the load that has begun, if there is one. Raises `Corrupt` if it is damaged."""
        path = f"{self._folder}/{PENDING_NAME}"
        body = read_checkpoint(self._disk, path, PENDING_KIND, VERSION, PENDING_HINT)
        if body is None:
            return None
        try:
            return msgspec.json.decode(body, type=PendingLoad)
        except msgspec.DecodeError as error:
            raise Corrupt(
                path=path, position=16, expected="a load", found=str(error), hint=PENDING_HINT
            ) from None

    def make_folder(self, load_id: str) -> str:
        """Create the folder for the rows of a load. Returns its path."""
        folder = f"{self._folder}/{load_id}"
        make_directories(self._disk, folder)
        return folder

    def last_load(self) -> str | None:
        """Return the id of the last load in the ledger."""
        ledger = self.ledger()
        return str(ledger["commit_id"][-1]) if ledger.num_rows else None

    def check(self, load: PendingLoad) -> None:
        """Raise `Corrupt` if the ledger is not the one that a load goes on from, as in a backup
        that was taken during loads: files could be loaded twice."""
        last = self.last_load()
        if last not in (load.after, load.load_id):
            raise Corrupt(
                path=f"{self._folder}/{LEDGER_NAME}",
                position=0,
                expected=f"load {load.after} as the last one",
                found=str(last),
                hint=f"Files may be missing in it. {self._folder}/{PENDING_NAME}: {PENDING_HINT}",
            )

    def begin(self, load: PendingLoad) -> None:
        """Note that a load begins, whose rows are in durable files. Durable on return."""
        body = msgspec.json.encode(load)
        write_checkpoint(self._disk, f"{self._folder}/{PENDING_NAME}", PENDING_KIND, VERSION, body)

    def portions(self, load: PendingLoad) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a load, portion by portion. Raises `Corrupt` if they are not there."""
        for name in load.staged:
            path = f"{self._folder}/{load.load_id}/{name}"
            try:
                yield from staged_batches(self._disk, path)
            except (OSError, pa.ArrowInvalid) as error:
                raise Corrupt(
                    path=path,
                    position=0,
                    expected="rows of a load",
                    found=str(error),
                    hint=f"The load cannot be finished. {self._folder}/{PENDING_NAME}: "
                    + PENDING_HINT,
                ) from None

    def record(self, entries: Sequence[LedgerEntry], load_id: str, time_ms: int) -> None:
        """Add the files of a load to the ledger, unless it has them. Durable on return."""
        if self.last_load() == load_id:
            return
        ledger = with_entries(self.ledger(), entries, commit_id=load_id, now_ms=time_ms)
        sink = pa.BufferOutputStream()
        options = pa.ipc.IpcWriteOptions(compression="zstd")
        with pa.ipc.new_stream(sink, LEDGER_SCHEMA, options=options) as stream:
            stream.write_table(ledger.combine_chunks())
        make_directories(self._disk, self._folder)
        body = sink.getvalue().to_pybytes()
        write_checkpoint(self._disk, f"{self._folder}/{LEDGER_NAME}", LEDGER_KIND, VERSION, body)

    def finish(self, load: PendingLoad) -> None:
        """Note that all rows of a load are in the log. Durable on return."""
        self.record(load.entries, load.load_id, load.time_ms)
        self.give_up(load)

    def give_up(self, load: PendingLoad) -> None:
        """Forget a load that has begun. Durable on return."""
        self._disk.unlink(f"{self._folder}/{PENDING_NAME}")
        self._disk.sync_directory(self._folder)
        self.remove_rows(load.load_id)

    def remove_rows(self, load_id: str) -> None:
        """Remove the rows of a load, unless it has begun and goes on."""
        load = self.pending()
        if load is not None and load.load_id == load_id:
            return
        if load_id in self._disk.list(self._folder):
            remove_folder(self._disk, f"{self._folder}/{load_id}")

    def clean(self) -> None:
        """Remove what a crash has left: call it when no load is running."""
        for name in self._disk.list(self._folder):
            if "." not in name:
                self.remove_rows(name)


def staged_batches(disk: Disk, path: str) -> Iterator[pa.RecordBatch]:
    """Yield the batches of an Arrow IPC stream. Its file is mapped, not read."""
    file = disk.open(path)
    try:
        mapped = file.map()
    finally:
        file.close()
    with pa.ipc.open_stream(pa.py_buffer(mapped.view)) as stream:
        yield from stream
