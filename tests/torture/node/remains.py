"""Leftovers of a node: processes, ports, half-written files.

Every process of a life has the life's name in its environment, also after it was reparented.
"""

from __future__ import annotations

import os
import signal
import socket
import threading
import time
from dataclasses import dataclass
from pathlib import Path

MARK = "FRAZIL_TORTURED_LIFE"
LOOK_S = 0.2
STAYS_S_MAX = 60.0
"""A process that outlives its node by this long counts as a leftover."""
KINDS = {
    "reader": b"-m frazil.reader",
    "spark": b"org.apache.spark.deploy.SparkSubmit",
    "task": b"frazil.lake.spark.fork_server",
    "worker": b"frazil.query.run.fork_server",
}
"""Kind of child process -> text in its command line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """One process of a life."""

    pid: int
    life: str
    command: bytes

    def is_a(self, kind: str) -> bool:
        return KINDS[kind] in self.command


def processes(marks: set[str]) -> list[Process]:
    """Return all processes of these lives."""
    found = []
    variables = {f"{MARK}={mark}".encode(): mark for mark in marks}
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        try:
            environment = (folder / "environ").read_bytes().split(b"\0")
            command = (folder / "cmdline").read_bytes().replace(b"\0", b" ")
        except OSError:
            continue  # exited meanwhile, or owned by another user
        for mark in variables.keys() & set(environment):
            found.append(Process(pid=int(folder.name), life=variables[mark], command=command))
    return found


def kill_children(mark: str, kind: str) -> int:
    """Send SIGKILL to the children of one kind. Return their number."""
    found = [process for process in processes({mark}) if process.is_a(kind)]
    for process in found:
        try:
            os.kill(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            continue
    return len(found)


class Watch:
    """Watches for processes that outlive their node, in its own thread."""

    def __init__(self) -> None:
        self._ended_at: dict[str, float] = {}
        self.stayed_s: dict[str, float] = {}
        """Kind -> longest time a process outlived its node."""
        self.leftover: set[str] = set()
        """Processes that outlived their node by more than STAYS_S_MAX."""
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def note_end(self, mark: str) -> None:
        """Record that this life has ended; its child processes should end, too."""
        self._ended_at[mark] = time.monotonic()

    def _run(self) -> None:
        while not self._stop.wait(LOOK_S):
            self._look()

    def _look(self) -> None:
        ended = dict(self._ended_at)
        seen = processes(set(ended)) if ended else []
        now = time.monotonic()
        for process in seen:
            kind = next((kind for kind in KINDS if process.is_a(kind)), "other")
            stayed_s = now - ended[process.life]
            self.stayed_s[kind] = max(self.stayed_s.get(kind, 0.0), stayed_s)
            if stayed_s > STAYS_S_MAX:
                self.leftover.add(f"{process.life}: {process.pid} {process.command[:150]!r}")
        for mark in ended.keys() - {process.life for process in seen}:
            del self._ended_at[mark]

    def close(self) -> None:
        """Wait until all processes have ended or count as leftovers."""
        deadline = time.monotonic() + 2 * STAYS_S_MAX
        while self._ended_at and time.monotonic() < deadline:
            time.sleep(LOOK_S)
        self._stop.set()
        self._thread.join()


def taken_ports(ports: list[int]) -> list[int]:
    """Return the ports on which listening fails."""
    taken = []
    for port in ports:
        with socket.socket() as tried:
            tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                tried.bind(("127.0.0.1", port))
                tried.listen()
            except OSError:
                taken.append(port)
    return taken


def litter(folder: Path) -> list[str]:
    """Return unfinished files and Spark's scratch files."""
    found = [path for path in folder.rglob("*") if path.is_file()]
    scratch = folder / "lake" / "scratch"
    return [
        str(path.relative_to(folder))
        for path in found
        if path.suffix in (".tmp", ".damaged", ".deleted") or scratch in path.parents
    ]
