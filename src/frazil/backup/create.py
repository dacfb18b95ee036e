"""create_backup: capture a data folder while a node uses it, or while none does.

    1. log      from its start to its end; producer state; progress of subscribers
    2. lake     the catalog, then every file that its tables name
    3. rest     everything else that is not derived
    4. log      what became durable meanwhile: the end of the backup
    5. loads    those into the log, once more: what the log has a part of is staged or noted

A row is in the log until the tables have it. So the log is captured from a start that the tables of
step 2 have reached, and up to an end that they have not passed: after a restore nothing is missing
between the two, and the appender continues where the tables end. docs/decisions/0020 explains it.

Everything is written below `<target>.incomplete`, synced, and renamed at the end.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from frazil.backup.manifest import (
    DATA,
    FORMAT,
    BackupFile,
    BackupManifest,
    BackupPartition,
    BackupTable,
    write_manifest,
)
from frazil.disk import FileCopier, RealDisk, free_bytes, is_full
from frazil.errors import Conflict, Corrupt, Malformed, Overloaded, Unavailable, Unknown
from frazil.lake import CATALOG_PATH, LOADS_FOLDER, CopiedTable, LakeCopy, check_embedded
from frazil.log import LOCK_NAME, CopiedPartition, LogCopy
from frazil.model import Clock, MiB, Rand
from frazil.settings import LakeConfig
from frazil.version import __version__

INCOMPLETE = ".incomplete"
ATTEMPTS_MAX = 5
"""An attempt fails if the log trimmed what it had yet to copy, or got a new topic."""
RESERVE_BYTES = 64 * MiB
"""Space that must be left: for what arrives meanwhile, and for the node."""

WAREHOUSE = "lake/warehouse"
CAPTURED = frozenset({"log", WAREHOUSE})
"""Folders that the rooms capture which own them."""
DERIVED = frozenset({"hot", "external", "lake/scratch"})
"""Folders that are rebuilt, or of use to a running process only."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CreatedBackup:
    """A finished backup."""

    path: str
    manifest: BackupManifest
    linked_bytes: int
    """Of files that share their bytes with the original."""


def create_backup(
    folder: Path, target: Path, lake: LakeConfig, *, clock: Clock, rand: Rand
) -> CreatedBackup:
    """Back up a data folder. Returns once the backup survives a power cut.

    Raises `Malformed` if the target exists or is inside the folder, `Overloaded` if there is not
    enough space, `Corrupt` if the folder is damaged, `Unavailable` if a file cannot be read or
    written. Nothing is left behind then.
    """
    check_embedded(lake)
    if not (folder / "log").is_dir() and not (folder / CATALOG_PATH).is_file():
        raise Unknown(f"{folder} is not a data folder of Frazil: it contains no log")
    _check_target(folder, target)
    with storage_errors(target), ExitStack() as undo:
        left_out = {*DERIVED, WAREHOUSE} if is_one_disk(folder, target) else DERIVED
        require_space(sum(size for _, size in RealDisk(folder).files(left_out)), target)
        parent = RealDisk(target.absolute().parent)
        scratch = f"{target.name}{INCOMPLETE}"
        undo.callback(parent.remove_tree, scratch)
        created = _capture(folder, target, parent.root / scratch, clock, rand)
        parent.rename(scratch, target.name)
        parent.sync_directory("")
        undo.pop_all()
    return created


@contextmanager
def storage_errors(target: Path) -> Iterator[None]:
    """Turn errors of the file system into errors that say what to do."""
    try:
        yield
    except PermissionError as error:
        raise Unavailable(f"{error}; run this as the user of the node") from error
    except OSError as error:
        if is_full(error):
            raise Overloaded(
                f"the disk of {target} is full; free some space, or choose another disk"
            ) from error
        raise Unavailable(f"a file cannot be read or written: {error}") from error


def is_one_disk(folder: Path, target: Path) -> bool:
    """Return whether files of a folder may be linked to a target, which need not exist."""
    above = (target.absolute(), *target.absolute().parents)
    existing = next(path for path in above if path.exists())
    return folder.stat().st_dev == existing.stat().st_dev


def _check_target(folder: Path, target: Path) -> None:
    if target.exists():
        raise Malformed(f"{target} exists; name a folder that does not, or remove it")
    unfinished = target.with_name(f"{target.name}{INCOMPLETE}")
    if unfinished.exists():
        raise Malformed(
            f"{unfinished} is a backup that is still being written, or was interrupted; wait for "
            "it, or remove it"
        )
    if target.resolve().is_relative_to(folder.resolve()):
        raise Malformed(f"{target} is inside the data folder {folder}; choose a folder outside")


def require_space(needed: int, folder: Path) -> None:
    """Raise `Overloaded` unless the disk of a folder has space for so many bytes."""
    free = free_bytes(folder)
    if needed + RESERVE_BYTES > free:
        raise Overloaded(
            f"{needed:,} bytes and a reserve of {RESERVE_BYTES:,} are needed, but the disk of "
            f"{folder} has {free:,} free; free some space, or choose another disk"
        )


def _capture(folder: Path, target: Path, scratch: Path, clock: Clock, rand: Rand) -> CreatedBackup:
    created_ms = clock.wall_ms()
    source, root, data = RealDisk(folder), RealDisk(scratch), RealDisk(scratch / DATA)
    copier = FileCopier(source, data)
    partitions, tables = _capture_all(
        source, copier, LakeCopy(copier, source, data), created_ms, rand
    )
    _check_agreement(partitions, tables)
    copier.sync()
    manifest = BackupManifest(
        format=FORMAT,
        frazil_version=__version__,
        created_ms=created_ms,
        source=str(folder.absolute()),
        partitions=[
            BackupPartition(
                topic=each.topic,
                partition=each.partition,
                start_offset=each.start_offset,
                end_offset=each.end_offset,
            )
            for each in partitions
        ],
        tables=[_table(each) for each in tables],
        files={
            path: BackupFile(size_bytes=file.size_bytes, sha256=file.sha256)
            for path, file in sorted(copier.files.items())
        },
    )
    write_manifest(root, manifest)
    return CreatedBackup(
        path=str(target),
        manifest=manifest,
        linked_bytes=sum(f.size_bytes for f in copier.files.values() if f.sha256 is None),
    )


def _capture_all(
    source: RealDisk, copier: FileCopier, lake: LakeCopy, now_ms: int, rand: Rand
) -> tuple[list[CopiedPartition], list[CopiedTable]]:
    """Copy everything, in the order that makes it consistent."""

    def is_owned() -> bool:
        return (source.root / LOCK_NAME).exists() and source.is_locked(LOCK_NAME)

    log = LogCopy(copier, is_owned=is_owned, rand=rand, now_ms=now_ms)
    for attempt in range(ATTEMPTS_MAX):
        log.begin()
        tables = lake.take()
        _copy_others(source, copier, "")
        try:
            partitions = log.finish()
        except Conflict:
            if attempt == ATTEMPTS_MAX - 1:
                raise
        else:
            # A load into the log that began meanwhile is staged now, or noted.
            _copy_others(source, copier, f"{LOADS_FOLDER}/")
            return partitions, tables
    raise AssertionError("the last attempt returns or raises")


def _copy_others(source: RealDisk, copier: FileCopier, prefix: str) -> None:
    for path in _other_files(source):
        if path.startswith(prefix):
            with suppress(FileNotFoundError):  # deleted by its owner meanwhile
                copier.copy(path)


def _other_files(source: RealDisk) -> list[str]:
    """Return the files that no room captures and nothing rebuilds, such as dashboards."""
    return [
        path
        for path, _ in source.files(CAPTURED | DERIVED)
        if path != LOCK_NAME and not path.startswith(CATALOG_PATH) and not path.endswith(".tmp")
    ]


def _table(table: CopiedTable) -> BackupTable:
    next_offsets: dict[str, dict[str, int]] = {}
    for (topic, partition), offset in table.next_offsets.items():
        next_offsets.setdefault(topic, {})[str(partition)] = offset
    return BackupTable(
        name=table.name,
        metadata=table.metadata,
        snapshot_id=table.snapshot_id,
        next_offsets=next_offsets,
    )


def _check_agreement(partitions: list[CopiedPartition], tables: list[CopiedTable]) -> None:
    """Raise `Corrupt` if a table has offsets that the log never had: bytes of the log are lost."""
    ends = {(each.topic, each.partition): each.end_offset for each in partitions}
    for table in tables:
        for key, offset in table.next_offsets.items():
            if offset > ends.get(key, offset):
                raise Corrupt(
                    path=f"log/{key.topic}/{key.partition}",
                    position=0,
                    expected=f"offsets up to {offset}, which table {table.name} has",
                    found=f"a log that ends at {ends[key]}",
                    hint="The log has lost its end; see docs/operating.md, Corrupt.",
                )
