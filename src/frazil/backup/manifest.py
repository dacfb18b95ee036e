"""BackupManifest: what a backup holds, in `backup.json`. docs/formats/backup.md describes it."""

from __future__ import annotations

from contextlib import closing

import msgspec

from frazil.disk import Disk, write_whole
from frazil.errors import Corrupt, Malformed, Unknown

NAME = "backup.json"
DATA = "data"
"""The folder with the files."""
FORMAT = 1


class BackupFile(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One file."""

    size_bytes: int
    sha256: str | None = None
    """None for a hard link: it was not read."""


class BackupPartition(msgspec.Struct, frozen=True, kw_only=True):
    """The offsets of one partition of the log."""

    topic: str
    partition: int
    start_offset: int
    end_offset: int


class BackupTable(msgspec.Struct, frozen=True, kw_only=True):
    """The state of one Iceberg table."""

    name: str
    metadata: str
    snapshot_id: int | None
    next_offsets: dict[str, dict[str, int]]
    """Topic -> partition -> the first offset that is not in the table."""


class BackupManifest(msgspec.Struct, frozen=True, kw_only=True):
    """What a backup holds."""

    format: int
    frazil_version: str
    created_ms: int
    source: str
    """The data folder, as it was named on its machine."""
    partitions: list[BackupPartition]
    tables: list[BackupTable]
    files: dict[str, BackupFile]
    """By path below `data`."""

    @property
    def size_bytes(self) -> int:
        return sum(file.size_bytes for file in self.files.values())


def write_manifest(disk: Disk, manifest: BackupManifest) -> None:
    """Write the manifest, durably. With it the backup is complete."""
    write_whole(disk, NAME, [msgspec.json.format(msgspec.json.encode(manifest), indent=1)])


def read_manifest(disk: Disk, shown: str) -> BackupManifest:
    """Read the manifest of the backup that the user calls `shown`.

    Raises `Unknown` if there is none, `Malformed` if a later release wrote it, `Corrupt` if it is
    damaged.
    """
    try:
        file = disk.open(NAME)
    except (FileNotFoundError, NotADirectoryError):
        raise Unknown(
            f"{shown} is not a complete backup: it has no {NAME}. `frazil backup DIR` writes that "
            "file last"
        ) from None
    with closing(file):
        data = file.read(0, file.size())
    try:
        found = msgspec.json.decode(data, type=dict[str, object]).get("format")
        if found != FORMAT:
            raise Malformed(
                f"{shown} has format {found}, and this release reads format {FORMAT}; use the "
                "release that wrote it"
            )
        manifest = msgspec.json.decode(data, type=BackupManifest)
        for path in manifest.files:
            if path.startswith("/") or ".." in path.split("/"):
                raise msgspec.ValidationError(f"the path {path!r}, which leaves the folder")
        return manifest
    except msgspec.DecodeError as error:
        raise Corrupt(
            path=f"{shown}/{NAME}",
            position=0,
            expected="the manifest of a backup",
            found=str(error),
            hint="Use another backup.",
        ) from None
