"""Programs of the machine: where they are, and who runs."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

COMMAND_CHARACTERS_MAX = 80


def find_program(name: str, environment: Mapping[str, str]) -> Path | None:
    """The program that a shell with these variables would run."""
    for folder in environment.get("PATH", os.defpath).split(os.pathsep):
        path = Path(folder or ".", name)
        if path.is_file() and os.access(path, os.X_OK, effective_ids=True):
            return path
    return None


def command_of(pid: int) -> str:
    """What a process was started with, cut short; empty when it is gone."""
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return ""
    text = " ".join(word.decode("utf-8", "replace") for word in words if word)
    is_long = len(text) > COMMAND_CHARACTERS_MAX
    return f"{text[:COMMAND_CHARACTERS_MAX]}..." if is_long else text


def listeners(port: int) -> list[int]:
    """The processes that listen at a port, as far as this user may see."""
    sockets = {f"socket:[{inode}]" for inode in _listening_inodes(port)}
    if not sockets:
        return []
    found = []
    for process in Path("/proc").iterdir():
        if process.name.isdigit() and _has_one_of(process / "fd", sockets):
            found.append(int(process.name))
    return sorted(found)


def _listening_inodes(port: int) -> set[str]:
    """From the kernel's table: `sl local_address rem_address st ... inode`, numbers in hex."""
    found = set()
    for table in ("tcp", "tcp6"):
        try:
            lines = Path(f"/proc/net/{table}").read_text().splitlines()[1:]
        except OSError:
            continue  # no such table where IPv6 is switched off
        for fields in map(str.split, lines):
            is_listening = fields[3] == "0A"
            if is_listening and int(fields[1].rpartition(":")[2], 16) == port:
                found.add(fields[9])
    return found


def _has_one_of(folder: Path, sockets: set[str]) -> bool:
    try:
        for descriptor in folder.iterdir():
            try:
                if str(descriptor.readlink()) in sockets:
                    return True
            except OSError:
                continue  # closed meanwhile
    except OSError:
        return False  # ended meanwhile, or another user's
    return False
