"""Faults injected into a node. Each act leaves the node running."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from random import Random
from typing import Protocol

from tests.torture.node.remains import kill_children

STARTING_S_MAX = 2.5
"""About the time a node takes to accept requests."""
TERM_CODES = {0, -signal.SIGTERM, -signal.SIGINT}
"""Exit codes after a second signal: the node stopped cleanly first, or the signal ended it."""
CHILD_S_MAX = 25.0
"""How long to wait for a child process to appear."""


class Tortured(Protocol):
    """The interface of a node that acts use."""

    chance: Random

    @property
    def mark(self) -> str: ...

    def kill(self) -> None: ...

    def launch(self) -> None: ...

    def await_ready(self) -> None: ...

    def signal(self, number: int) -> None: ...

    def wait(self) -> int: ...

    def flush(self) -> None: ...

    def note(self, fault: str) -> None: ...

    def complain(self, problem: str) -> None: ...


def kill(node: Tortured) -> None:
    """Kill the node with SIGKILL and restart it."""
    node.kill()
    _start(node)


def kill_starting(node: Tortured) -> None:
    """Kill the node, and kill it again while it starts and recovers."""
    node.kill()
    for _ in range(node.chance.randint(1, 3)):
        node.launch()
        time.sleep(node.chance.uniform(0.05, STARTING_S_MAX))
        node.kill()
        node.note("killed_starting")
    _start(node)


def term(node: Tortured) -> None:
    """Stop the node with SIGTERM; it must exit with 0."""
    node.signal(signal.SIGTERM)
    code = node.wait()
    if code != 0:
        node.complain(f"a stop ended with {code}")
    _start(node)


def term_twice(node: Tortured) -> None:
    """Send a second signal while the node stops."""
    node.signal(signal.SIGTERM)
    time.sleep(node.chance.uniform(0, 2))
    node.signal(node.chance.choice((signal.SIGTERM, signal.SIGINT)))
    code = node.wait()
    if code not in TERM_CODES:
        node.complain(f"a forced stop ended with {code}")
    node.note("forced" if code else "was_faster")
    _start(node)


def term_then_kill(node: Tortured) -> None:
    """Kill the node while it stops."""
    node.signal(signal.SIGTERM)
    time.sleep(node.chance.uniform(0, 2))
    node.kill()
    _start(node)


def term_starting(node: Tortured) -> None:
    """Stop the node with SIGTERM while it starts and recovers."""
    node.kill()
    node.launch()
    time.sleep(node.chance.uniform(0.05, STARTING_S_MAX))
    node.signal(signal.SIGTERM)
    code = node.wait()
    if code not in TERM_CODES:
        node.complain(f"a stop during startup ended with {code}")
    _start(node)


def kill_reader(node: Tortured) -> None:
    """Kill the reader process; the writer keeps acknowledging and starts another one."""
    _kill_child(node, "reader")


def kill_spark(node: Tortured) -> None:
    """Kill only the JVM; the node keeps running."""
    _kill_child(node, "spark")


def kill_task(node: Tortured) -> None:
    """Kill the Python processes of Spark's tasks while they write."""
    _kill_child(node, "task")


def kill_worker(node: Tortured) -> None:
    """Kill the query worker processes while they run queries."""
    _kill_child(node, "worker")


def _kill_child(node: Tortured, kind: str) -> None:
    node.flush()
    deadline = time.monotonic() + CHILD_S_MAX
    while time.monotonic() < deadline:
        if kill_children(node.mark, kind):
            node.note(f"killed_{kind}")
            return
        time.sleep(0.02)


def _start(node: Tortured) -> None:
    node.launch()
    node.await_ready()


Act = Callable[[Tortured], None]
ACTS: dict[str, tuple[Act, int]] = {
    "kill": (kill, 5),
    "term": (term, 4),
    "kill_starting": (kill_starting, 2),
    "term_twice": (term_twice, 2),
    "term_then_kill": (term_then_kill, 1),
    "term_starting": (term_starting, 1),
    "kill_reader": (kill_reader, 4),
    "kill_spark": (kill_spark, 2),
    "kill_task": (kill_task, 1),
    "kill_worker": (kill_worker, 1),
}
"""Name -> (act, relative frequency)."""


def draw_acts(chance: Random, count: int) -> list[str]:
    """Return `count` acts in random order, each with its relative frequency."""
    drawn: list[str] = []
    while len(drawn) < count:
        pack = [name for name, (_, share) in ACTS.items() for _ in range(share)]
        chance.shuffle(pack)
        drawn += pack
    return drawn[:count]
