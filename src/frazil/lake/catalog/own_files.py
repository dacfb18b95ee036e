"""Names of table files that only we write. What a killed task or commit of ours has left behind is
told from files of a writer that is still at work, and need not wait until it is old.

    data/…/3f0c9a7be1d2-00000004-00000.parquet                   a data file of a task
    data/3f0c9a7be1d2-00000004-00000-deletes.parquet             a delete file of a keyed table
    metadata/6672617a-696c-8f3e-9c1d-0a4b5c6d7e8f-m0.avro        a manifest of a commit
    metadata/snap-1234-0-6672617a-696c-8f3e-9c1d-….avro          its manifest list

The id of a commit is a UUID of version 8, "custom", that begins with `frazil`. Other writers take
random ones, version 4. Metadata files (`….metadata.json`) are named by the catalog; they have no
values of rows.
"""

from __future__ import annotations

import re
from typing import Any
from uuid import UUID

from pyiceberg.table.update.snapshot import _FastAppendFiles, _SnapshotProducer

MARK = b"frazil"
VERSION = 8
OWN_DATA = re.compile(r"/[0-9a-f]{12}-\d{8}(-\d+)?-\d{5}(-deletes)?\.parquet$")
OWN_METADATA = re.compile(
    rf"/(snap-\d+-\d+-)?{MARK[:4].hex()}-{MARK[4:].hex()}-{VERSION}"
    r"[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}(-m\d+)?\.avro$"
)


def is_own(path: str) -> bool:
    """Return whether only a task or a commit of ours can have written a file."""
    return OWN_DATA.search(path) is not None or OWN_METADATA.search(path) is not None


def own_uuid(unique: UUID) -> UUID:
    """Return a random id with our mark."""
    rest = unique.int & ((1 << 80) - 1)
    return UUID(int=int.from_bytes(MARK, "big") << 80 | VERSION << 76 | rest & ~(0xF << 76))


class OwnNames(_SnapshotProducer[Any]):
    """Base class placed before a snapshot producer of PyIceberg: its files have names of ours.
    PyIceberg sets another random id for each attempt."""

    @property
    def commit_uuid(self) -> UUID:
        return self._own_uuid

    @commit_uuid.setter
    def commit_uuid(self, unique: UUID) -> None:
        self._own_uuid = own_uuid(unique)


class OwnAppend(OwnNames, _FastAppendFiles):
    """PyIceberg's fast append."""
