"""Programs, processes and listening sockets of the machine."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

COMMAND_CHARACTERS_MAX = 80
EFFECTIVE = os.access in os.supports_effective_ids


def find_program(name: str, environment: Mapping[str, str]) -> Path | None:
    """Return the program that a shell with these variables would run."""
    for folder in environment.get("PATH", os.defpath).split(os.pathsep):
        path = Path(folder or ".", name)
        if path.is_file() and os.access(path, os.X_OK, effective_ids=EFFECTIVE):
            return path
    return None


def command_of(pid: int) -> str:
    """Return the command line of a process, shortened; empty if it has exited."""
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return ""
    text = " ".join(word.decode("utf-8", "replace") for word in words if word)
    is_long = len(text) > COMMAND_CHARACTERS_MAX
    return f"{text[:COMMAND_CHARACTERS_MAX]}..." if is_long else text


def parent_of(pid: int) -> int | None:
    """Return the process that has started another one; None if that has exited."""
    try:
        status = Path(f"/proc/{pid}/status").read_text(encoding="ascii", errors="replace")
    except OSError:
        return None
    (line,) = (line for line in status.splitlines() if line.startswith("PPid:"))
    return int(line.split()[1])


def listeners(port: int) -> list[int]:
    """Return the processes that listen on a port, as far as this user can see."""
    sockets = {f"socket:[{inode}]" for inode in _listening_inodes(port)}
    if not sockets:
        return []
    pids = []
    for process in Path("/proc").iterdir():
        if process.name.isdigit() and _has_one_of(process / "fd", sockets):
            pids.append(int(process.name))
    return sorted(pids)


def _listening_inodes(port: int) -> set[str]:
    """Parse the kernel's table: `sl local_address rem_address st ... inode`, in hex."""
    inodes = set()
    for table in ("tcp", "tcp6"):
        try:
            lines = Path(f"/proc/net/{table}").read_text().splitlines()[1:]
        except OSError:
            continue  # IPv6 is disabled
        for fields in map(str.split, lines):
            is_listening = fields[3] == "0A"
            if is_listening and int(fields[1].rpartition(":")[2], 16) == port:
                inodes.add(fields[9])
    return inodes


def _has_one_of(folder: Path, sockets: set[str]) -> bool:
    try:
        for descriptor in folder.iterdir():
            try:
                if str(descriptor.readlink()) in sockets:
                    return True
            except OSError:
                continue  # closed meanwhile
    except OSError:
        return False  # exited meanwhile, or of another user
    return False
