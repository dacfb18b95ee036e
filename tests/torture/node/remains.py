"""What a node leaves behind: processes, ports, half-written files.

Every process of a life has the life's name in its environment, whoever its parent is by now.
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
"""A process that is there so long after its node will not go by itself."""
KINDS = {
    "spark": b"org.apache.spark.deploy.SparkSubmit",
    "task": b"frazil.lake.spark.fork_server",
    "worker": b"frazil.query.run.worker_main",
}
"""What the command line of a child has in it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """One process of a life."""

    pid: int
    life: str
    command: bytes

    def is_a(self, kind: str) -> bool:
        return KINDS[kind] in self.command


def processes(marks: set[str]) -> list[Process]:
    """All processes of these lives."""
    found = []
    wanted = {f"{MARK}={mark}".encode(): mark for mark in marks}
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        try:
            environment = (folder / "environ").read_bytes().split(b"\0")
            command = (folder / "cmdline").read_bytes().replace(b"\0", b" ")
        except OSError:
            continue  # gone meanwhile, or another user's
        for mark in wanted.keys() & set(environment):
            found.append(Process(pid=int(folder.name), life=wanted[mark], command=command))
    return found


def kill_children(mark: str, kind: str) -> int:
    """SIGKILL for the children of one kind. How many there were."""
    found = [process for process in processes({mark}) if process.is_a(kind)]
    for process in found:
        try:
            os.kill(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            continue
    return len(found)


class Watch:
    """Looks all the time which processes have outlived their node. Owned by the story."""

    def __init__(self) -> None:
        self._ended_at: dict[str, float] = {}
        self.stayed_s: dict[str, float] = {}
        """By kind: the longest that one was there after its node."""
        self.leftover: set[str] = set()
        """Those that stayed too long."""
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def note_end(self, mark: str) -> None:
        """This life has ended; whatever it started should go as well."""
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
        """Waits until all have gone, or have stayed too long."""
        deadline = time.monotonic() + 2 * STAYS_S_MAX
        while self._ended_at and time.monotonic() < deadline:
            time.sleep(LOOK_S)
        self._stop.set()
        self._thread.join()


def taken_ports(ports: list[int]) -> list[int]:
    """Those on which nobody could listen now."""
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
    """Files that somebody began and nobody finished, and Spark's own."""
    found = [path for path in folder.rglob("*") if path.is_file()]
    scratch = folder / "lake" / "scratch"
    return [
        str(path.relative_to(folder))
        for path in found
        if path.suffix in (".tmp", ".damaged", ".deleted") or scratch in path.parents
    ]
