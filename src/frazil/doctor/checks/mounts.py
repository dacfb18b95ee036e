"""File systems of paths."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

MEMORY = frozenset({"tmpfs", "ramfs", "devtmpfs", "rootfs"})
"""Lost when the machine stops."""
LAYERED = frozenset({"overlay", "aufs"})
"""Lost with the container."""
REMOTE = frozenset({"nfs", "nfs4", "cifs", "smb3", "9p", "ceph", "fuse.sshfs", "glusterfs"})
"""Locks and syncs depend on the server."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mount:
    """One line of the mount table."""

    point: str
    kind: str
    is_read_only: bool

    @property
    def is_persistent(self) -> bool:
        """Whether files are local and survive a restart of the machine."""
        return self.kind not in MEMORY | LAYERED | REMOTE


def mount_of(path: Path) -> Mount:
    """Return the mount of an existing path: the deepest, and of several the last. Unknown, if this
    system has no such table."""
    real = path.resolve()
    mount = Mount(point="/", kind="unknown", is_read_only=False)
    table = Path("/proc/self/mountinfo")
    if not table.exists():
        return mount
    for line in table.read_text(errors="replace").splitlines():
        before, _, after = line.partition(" - ")
        point = before.split()[4].encode("latin-1", "replace").decode("unicode_escape")
        if real.is_relative_to(point) and len(point) >= len(mount.point):
            options = f"{before.split()[5]},{after.split()[2]}".split(",")
            mount = Mount(point=point, kind=after.split()[0], is_read_only="ro" in options)
    return mount


def persistent_folder() -> Path | None:
    """Return a persistent folder that this user can create."""
    for folder in (Path.cwd() / "data", Path.home() / "frazil-data", Path("/var/tmp/frazil-data")):
        parent = next(path for path in (folder, *folder.parents) if path.exists())
        if mount_of(parent).is_persistent and os.access(parent, os.W_OK | os.X_OK):
            return folder
    return None
