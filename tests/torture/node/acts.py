"""What is done to a node. Each act leaves a node that is up."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from random import Random
from typing import Protocol

from tests.torture.node.remains import kill_children

STARTING_S_MAX = 2.5
"""A node accepts after that, or a little later."""
TERM_CODES = {0, -signal.SIGTERM, -signal.SIGINT}
"""Of one that got a second signal: it had ended by itself, or it ended where it stood."""
CHILD_S_MAX = 25.0
"""How long to wait for a child that can be killed."""


class Tortured(Protocol):
    """A node as acts see it."""

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
    """Gone between two instructions."""
    node.kill()
    _start(node)


def kill_starting(node: Tortured) -> None:
    """Killed, and killed again while it starts and recovers."""
    node.kill()
    for _ in range(node.chance.randint(1, 3)):
        node.launch()
        time.sleep(node.chance.uniform(0.05, STARTING_S_MAX))
        node.kill()
        node.note("killed_starting")
    _start(node)


def term(node: Tortured) -> None:
    """As an operator stops it: it must end by itself, and well."""
    node.signal(signal.SIGTERM)
    code = node.wait()
    if code != 0:
        node.complain(f"a stop ended with {code}")
    _start(node)


def term_twice(node: Tortured) -> None:
    """Somebody has no patience."""
    node.signal(signal.SIGTERM)
    time.sleep(node.chance.uniform(0, 2))
    node.signal(node.chance.choice((signal.SIGTERM, signal.SIGINT)))
    code = node.wait()
    if code not in TERM_CODES:
        node.complain(f"a forced stop ended with {code}")
    node.note("forced" if code else "was_faster")
    _start(node)


def term_then_kill(node: Tortured) -> None:
    """Killed while it stops."""
    node.signal(signal.SIGTERM)
    time.sleep(node.chance.uniform(0, 2))
    node.kill()
    _start(node)


def term_starting(node: Tortured) -> None:
    """Stopped while it starts and recovers."""
    node.kill()
    node.launch()
    time.sleep(node.chance.uniform(0.05, STARTING_S_MAX))
    node.signal(signal.SIGTERM)
    code = node.wait()
    if code not in TERM_CODES:
        node.complain(f"a stop at the start ended with {code}")
    _start(node)


def kill_spark(node: Tortured) -> None:
    """Only Java is killed; the node goes on."""
    _kill_child(node, "spark")


def kill_task(node: Tortured) -> None:
    """The Python processes of Spark's tasks are killed, with what they were writing."""
    _kill_child(node, "task")


def kill_worker(node: Tortured) -> None:
    """The processes of queries are killed, with what they were counting."""
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
    "kill_spark": (kill_spark, 2),
    "kill_task": (kill_task, 1),
    "kill_worker": (kill_worker, 1),
}
"""Name -> what is done, and how often among the others."""


def dealt(chance: Random, count: int) -> list[str]:
    """So many acts, in any order, each as often as its share says."""
    found: list[str] = []
    while len(found) < count:
        pack = [name for name, (_, share) in ACTS.items() for _ in range(share)]
        chance.shuffle(pack)
        found += pack
    return found[:count]
