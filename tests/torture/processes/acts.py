"""Signals to the processes that read, and where these processes are.

    writer ─> reader ─> fork server ─> query workers

A stopped reader is continued after some seconds: the writer lets it hang for longer than a cycle
takes. A fork server and a worker that are stopped stay so: whoever needs them must do without.
"""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from random import Random

READER = b"frazil.reader"
FORK_SERVER = b"frazil.query.run.fork_server"
STOPPED_S_MAX = 2.0
ENDING_S = 0.002
SIGNALS = {
    "segv": signal.SIGSEGV,
    "kill": signal.SIGKILL,
    "abort": signal.SIGABRT,
    "stop": signal.SIGSTOP,
}
ACTS = {
    "reader_segv": 4,
    "reader_kill": 1,
    "reader_abort": 1,
    "reader_stop": 1,
    "server_segv": 2,
    "server_kill": 1,
    "server_stop": 1,
    "worker_segv": 4,
    "worker_kill": 1,
    "worker_abort": 1,
    "worker_stop": 1,
}
"""Target and signal -> relative frequency."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Readers:
    """The processes of a node that read. A process that is missing has just ended."""

    reader: int | None
    server: int | None
    workers: tuple[int, ...]


def children(pid: int, command: bytes) -> list[int]:
    """Return the child processes of all threads of a process, by their command."""
    found = []
    with suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            for child in (task / "children").read_text().split():
                if command in Path(f"/proc/{child}/cmdline").read_bytes():
                    found.append(int(child))
    return found


def readers_of(writer: int) -> Readers:
    reader = next(iter(children(writer, READER)), None)
    server = None if reader is None else next(iter(children(reader, FORK_SERVER)), None)
    workers = () if server is None else tuple(children(server, FORK_SERVER))
    return Readers(reader=reader, server=server, workers=workers)


def draw_acts(chance: Random, count: int) -> list[str]:
    """Return `count` acts in random order, each with its relative frequency."""
    drawn: list[str] = []
    while len(drawn) < count:
        pack = [name for name, share in ACTS.items() for _ in range(share)]
        chance.shuffle(pack)
        drawn += pack
    return drawn[:count]


def act(writer: int, name: str, chance: Random) -> float | None:
    """Send one signal, and wait until it has had its effect. Returns when it was sent, or when a
    stopped reader was continued; None if there is no such process now.

    Of a fork server that is stopped the workers are killed as well: otherwise no query needs it.
    """
    target, _, kind = name.partition("_")
    found = readers_of(writer)
    pids = {
        "reader": [found.reader] if found.reader else [],
        "server": [found.server] if found.server else [],
        "worker": [chance.choice(found.workers)] if found.workers else [],
    }[target]
    if not pids:
        return None
    others = found.workers if name == "server_stop" else ()
    sent_at = time.monotonic()
    try:
        os.kill(pids[0], SIGNALS[kind])
        for pid in others:
            os.kill(pid, signal.SIGKILL)
        if name == "reader_stop":
            time.sleep(chance.uniform(0.1, STOPPED_S_MAX))
            os.kill(pids[0], signal.SIGCONT)
            sent_at = time.monotonic()
    except ProcessLookupError:
        return None
    while kind != "stop" and not has_ended(pids[0]):
        time.sleep(ENDING_S)
    return sent_at


def has_ended(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True
