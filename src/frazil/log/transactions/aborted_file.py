"""AbortedFile: the aborted transactions of a partition on disk. Derived from the log.

The owner adds an entry before the watermark file tells of it, so another process always finds as
many as the watermark file says. It is synced with the checkpoint, which says how many are durable.
The byte layout is in `docs/formats/transactions.md`.
"""

from __future__ import annotations

import struct
from contextlib import closing, suppress

from google_crc32c import value as crc32c

from frazil.disk import Disk, File, write_whole
from frazil.errors import Corrupt
from frazil.log.transactions.aborted import AbortedTransaction, AbortedTransactions

NAME = "aborted"
MAGIC = b"FRZABT\r\n"
HEADER = struct.Struct("<8sQ")
"""Magic, number of the first entry; then their CRC32C."""
CHECK = struct.Struct("<I")
HEADER_BYTES = HEADER.size + CHECK.size
ENTRY = struct.Struct("<qqq")
"""Producer id, first offset, end offset; then their CRC32C."""
ENTRY_BYTES = ENTRY.size + CHECK.size


class AbortedFile:
    """Owned by the writer thread. Does not exist until a transaction is aborted."""

    def __init__(self, disk: Disk, folder: str) -> None:
        self._disk = disk
        self._folder = folder
        self._path = f"{folder}/{NAME}"
        self._file: File | None = None
        self._first_number = 0
        self._reserved = 0
        """Entries that the file has room for, from its first on."""

    def reserve(self, aborted: AbortedTransactions, count: int) -> None:
        """Make room for `count` more entries, so that adding them cannot meet a full disk."""
        if self._file is None:
            self.replace(aborted)
        assert self._file is not None
        needed = aborted.count + count - self._first_number
        if needed > self._reserved:
            self._file.append([bytes((needed - self._reserved) * ENTRY_BYTES)])
            self._reserved = needed

    def add(self, entry: AbortedTransaction, number: int) -> None:
        """Write an entry into reserved room. Not synced."""
        assert self._file is not None
        position = HEADER_BYTES + (number - self._first_number) * ENTRY_BYTES
        self._file.write_at(position, _encode(entry))

    def replace(self, aborted: AbortedTransactions) -> None:
        """Write the file anew with these entries. Durable on return."""
        self.close()
        head = HEADER.pack(MAGIC, aborted.first_number)
        entries = [_encode(entry) for entry in aborted.from_number(0)]
        write_whole(self._disk, self._path, [b"".join((head, CHECK.pack(crc32c(head)), *entries))])
        self._file = self._disk.open(self._path, "edit")
        self._first_number, self._reserved = aborted.first_number, len(aborted)

    def sync(self) -> None:
        if self._file is not None:
            self._file.sync()

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None


class AbortedReader:
    """Follows the file of another process. Owned by one thread."""

    def __init__(self, disk: Disk, folder: str) -> None:
        self._disk = disk
        self._folder = folder
        self._known = AbortedTransactions()

    def read(self, count: int) -> AbortedTransactions:
        """Return the first `count` transactions there have been, without forgotten ones. Raises
        `Corrupt` if the file has fewer."""
        if self._known.count != count:
            self._known = read_aborted(self._disk, self._folder, count)
        return self._known


def read_aborted(disk: Disk, folder: str, count: int) -> AbortedTransactions:
    """Read the file up to absolute number `count`. Raises `Corrupt` if it is damaged or has
    fewer."""
    path = f"{folder}/{NAME}"
    if count == 0:
        return AbortedTransactions()
    with suppress(FileNotFoundError), closing(disk.open(path)) as file:
        data = file.read(0, HEADER_BYTES)
        if len(data) == HEADER_BYTES:
            magic, first_number = HEADER.unpack_from(data)
            (check,) = CHECK.unpack_from(data, HEADER.size)
            if magic == MAGIC and check == crc32c(data[: HEADER.size]):
                return _read_entries(file, path, first_number, count)
    raise _damaged(path, 0, "a header")


def _read_entries(file: File, path: str, first_number: int, count: int) -> AbortedTransactions:
    aborted = AbortedTransactions(first_number=first_number)
    data = file.read(HEADER_BYTES, max(0, count - first_number) * ENTRY_BYTES)
    for at in range(0, max(0, count - first_number) * ENTRY_BYTES, ENTRY_BYTES):
        entry = data[at : at + ENTRY.size]
        if (
            len(data) < at + ENTRY_BYTES
            or crc32c(entry) != CHECK.unpack_from(data, at + ENTRY.size)[0]
        ):
            raise _damaged(path, HEADER_BYTES + at, f"entry {first_number + at // ENTRY_BYTES}")
        aborted.add(AbortedTransaction(*ENTRY.unpack(entry)))
    return aborted


def _encode(entry: AbortedTransaction) -> bytes:
    body = ENTRY.pack(*entry)
    return body + CHECK.pack(crc32c(body))


def _damaged(path: str, position: int, expected: str) -> Corrupt:
    return Corrupt(
        path=path,
        position=position,
        expected=expected,
        found="other bytes, or the end of the file",
        hint="It is rebuilt from the log at the next start.",
    )
