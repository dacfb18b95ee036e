"""restore_backup: verify a backup, and make a data folder of it.

The backup is only read. Files of tables, which never change, are linked where possible; all others
are copied. Everything is written below `.restoring` in the new folder first, and moved in place at
the end, the log last: without a log it is no data folder.

Paths in the tables' metadata still name the original: the first start relocates them.
"""

from __future__ import annotations

from contextlib import ExitStack, closing
from pathlib import Path

from frazil.backup.create import WAREHOUSE, is_one_disk, require_space, storage_errors
from frazil.backup.manifest import DATA, BackupFile, BackupManifest, read_manifest
from frazil.disk import FileCopier, RealDisk, sha256_of
from frazil.errors import Corrupt, Malformed

SCRATCH = ".restoring"
IGNORED = frozenset({"lost+found"})
"""May be in an empty folder: every ext4 file system has it."""
LINKED = f"{WAREHOUSE}/"
"""Files below it never change."""
LAST = "log"


def verify_backup(backup: Path) -> BackupManifest:
    """Check that every file of the manifest is there, with its size and checksum.

    Raises `Corrupt`, which names the file.
    """
    with storage_errors(backup):
        manifest, disk = _open(backup)
        for path, file in manifest.files.items():
            if file.sha256 is not None:
                _check_sum(disk, path, file, sha256_of(disk, path))
        return manifest


def restore_backup(backup: Path, folder: Path) -> BackupManifest:
    """Restore a backup to a new data folder. Returns once it survives a power cut.

    Raises `Malformed` if the folder is not empty, `Overloaded` if there is not enough space,
    `Corrupt` if the backup is damaged, `Unavailable` if a file cannot be read or written. Nothing
    is left behind then.
    """
    with storage_errors(folder):
        return _restore(backup, folder)


def _restore(backup: Path, folder: Path) -> BackupManifest:
    manifest, source = _open(backup)
    if folder.exists() and not folder.is_dir():
        raise Malformed(f"{folder} is not a folder; name a new or an empty one")
    if folder.exists() and {path.name for path in folder.iterdir()} - IGNORED:
        raise Malformed(f"{folder} is not empty; name a new or an empty folder")
    needed = sum(
        file.size_bytes
        for path, file in manifest.files.items()
        if not path.startswith(LINKED) or not is_one_disk(backup, folder)
    )
    require_space(needed, folder)
    with ExitStack() as undo:
        if not folder.exists():
            undo.callback(RealDisk(folder.absolute().parent).remove_tree, folder.name)
        target = RealDisk(folder)
        undo.callback(target.remove_tree, SCRATCH)
        _copy_all(manifest, source, RealDisk(folder / SCRATCH))
        undo.pop_all()
    _move_in_place(target)
    return manifest


def _open(backup: Path) -> tuple[BackupManifest, RealDisk]:
    """Read the manifest and check the size of every file."""
    if not backup.is_dir():
        raise Malformed(f"{backup} is not a folder; name a backup that `frazil backup` wrote")
    manifest = read_manifest(RealDisk(backup), str(backup))
    disk = RealDisk(backup / DATA)
    for path, file in manifest.files.items():
        try:
            with closing(disk.open(path)) as found:
                size = found.size()
        except FileNotFoundError:
            raise _damaged(disk, path, f"{file.size_bytes:,} bytes", "no file") from None
        if size != file.size_bytes:
            raise _damaged(disk, path, f"{file.size_bytes:,} bytes", f"{size:,}")
    return manifest, disk


def _check_sum(disk: RealDisk, path: str, file: BackupFile, found: str | None) -> None:
    if file.sha256 is not None and found != file.sha256:
        raise _damaged(disk, path, f"SHA-256 {file.sha256}", str(found))


def _damaged(disk: RealDisk, path: str, expected: str, found: str) -> Corrupt:
    return Corrupt(
        path=str(disk.root / path),
        position=0,
        expected=expected,
        found=found,
        hint="The backup is damaged or incomplete: use another one, and check its disk.",
    )


def _copy_all(manifest: BackupManifest, source: RealDisk, target: RealDisk) -> None:
    copier = FileCopier(source, target)
    for path, file in manifest.files.items():
        if path.startswith(LINKED):
            copier.link(path)
            if copier.files[path].sha256 is None and file.sha256 is not None:
                _check_sum(source, path, file, sha256_of(source, path))
                continue
        else:
            copier.copy(path)
        _check_sum(source, path, file, copier.files[path].sha256)
    copier.sync()


def _move_in_place(target: RealDisk) -> None:
    for name in sorted(target.list(SCRATCH), key=lambda name: name == LAST):
        target.rename(f"{SCRATCH}/{name}", name)
    target.remove_tree(SCRATCH)
    target.sync_directory("")
