"""Which file system a path is on."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

MEMORY = frozenset({"tmpfs", "ramfs", "devtmpfs", "rootfs"})
"""Gone when the machine stops."""
LAYERED = frozenset({"overlay", "aufs"})
"""Gone with its container."""
REMOTE = frozenset({"nfs", "nfs4", "cifs", "smb3", "9p", "ceph", "fuse.sshfs", "glusterfs"})
"""Another machine answers: its locks and syncs are as good as it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mount:
    """One line of what is mounted."""

    point: str
    kind: str
    is_read_only: bool

    @property
    def is_lasting(self) -> bool:
        """Do files outlive the machine's next start, and are they this machine's own?"""
        return self.kind not in MEMORY | LAYERED | REMOTE


def mount_of(path: Path) -> Mount:
    """Where a path that exists is mounted: the deepest mount above it, the last one there."""
    real = path.resolve()
    found = Mount(point="/", kind="unknown", is_read_only=False)
    for line in Path("/proc/self/mountinfo").read_text(errors="replace").splitlines():
        before, _, after = line.partition(" - ")
        point = before.split()[4].encode("latin-1", "replace").decode("unicode_escape")
        if real.is_relative_to(point) and len(point) >= len(found.point):
            options = f"{before.split()[5]},{after.split()[2]}".split(",")
            found = Mount(point=point, kind=after.split()[0], is_read_only="ro" in options)
    return found


def lasting_folder() -> Path | None:
    """A folder for data that this user can make, and that stays."""
    for folder in (Path.cwd() / "data", Path.home() / "frazil-data", Path("/var/tmp/frazil-data")):
        above = next(path for path in (folder, *folder.parents) if path.exists())
        if mount_of(above).is_lasting and os.access(above, os.W_OK | os.X_OK):
            return folder
    return None
