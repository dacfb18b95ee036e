"""A registry that is used until its process is killed, at one of its steps or at any moment.

python -m tests.torture.registry.child FOLDER SEED STEP [mutant]
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from frazil.disk import RealDisk
from frazil.log import Log
from frazil.model import KiB, SystemClock
from frazil.registry import (
    CompatibilityLevel,
    Registration,
    Registry,
    RegistryError,
    SchemaContent,
)
from frazil.settings import LogConfig, TopicConfig

STEPS = ("before_id", "after_id", "before_append", "after_append", "after_answer", "any")
SUBJECTS = 3
SMALL = LogConfig(segment_bytes_max=1 * KiB, disk_bytes_max=1024 * KiB, batch_bytes_max=16 * KiB)
FORGETFUL = TopicConfig(
    cleanup="compact", compact_dirty_ratio_min=0.0, tombstone_grace_ms=0, compact_lag_ms_max=1
)
"""Compaction forgets schemas that were deleted for good at once: only the counter knows."""


def say(**fact: Any) -> None:
    os.write(1, json.dumps(fact).encode() + b"\n")


def killed_at(step: str, wanted: str, rand: random.Random) -> None:
    if step == wanted and rand.random() < 0.03:
        say(killed=step)
        os.kill(os.getpid(), signal.SIGKILL)


def wrapped(work: Callable[..., Any], before: str, after: str, check: Any) -> Callable[..., Any]:
    def call(*values: Any) -> Any:
        check(before)
        result = work(*values)
        check(after)
        return result

    return call


def main() -> None:
    folder, seed, step = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    rand = random.Random(seed)
    disk, clock = RealDisk(folder), SystemClock()
    with Log.open(disk, SMALL, clock=clock, rand=random.SystemRandom()) as log:
        log.create_topic("_schemas", FORGETFUL)
        registry = Registry.open(disk, log, clock=clock)

        def check(reached: str) -> None:
            killed_at(reached, step, rand)

        ids, topic = registry._ids, registry._topic
        if "mutant" in sys.argv:  # ids by what the log knows
            ids.next = lambda: topic.state.id_max + 1  # type: ignore[method-assign]
        ids.next = wrapped(ids.next, "before_id", "after_id", check)  # type: ignore[method-assign]
        append = wrapped(topic.append, "before_append", "after_append", check)
        topic.append = append  # type: ignore[method-assign]
        registry.set_level(None, CompatibilityLevel.NONE)
        say(ready=True)
        while True:
            act(registry, rand)
            check("after_answer")
            if rand.random() < 0.3:
                log.maintain()


def act(registry: Registry, rand: random.Random) -> None:
    """Register or delete something, and tell what was acknowledged."""
    subject = f"s{rand.randrange(SUBJECTS)}"
    try:
        if rand.random() < 0.4:  # so that what was deleted is in a segment that is compacted
            registry.set_level("unused", rand.choice(list(CompatibilityLevel)))
            return
        if rand.random() < 0.5:
            say(deleting=subject)
            registry.delete_subject(subject, permanent=False)
            registry.delete_subject(subject, permanent=True)
            return
        text = f'{{"type":"fixed","name":"F","size":{rand.randrange(200)}}}'
        content = SchemaContent(text=text)
        version = registry.register(subject, Registration(content=content))
        say(subject=subject, version=version.version, id=version.schema_id, text=text)
    except RegistryError:
        pass  # there is nothing to delete


if __name__ == "__main__":
    main()
