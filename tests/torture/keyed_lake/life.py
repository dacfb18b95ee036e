"""A process that writes, freezes, compacts and expires, until it ends or is killed."""

from __future__ import annotations

import logging
import multiprocessing
import os
import traceback
from dataclasses import dataclass, replace
from multiprocessing.process import BaseProcess
from pathlib import Path
from random import Random

from frazil.errors import FrazilError
from frazil.tables import Operation
from tests.lake.keyed.world import NAME, KeyedWorld, keyed_world, new_row

ROUNDS = 5
CHANGES = 40
KEYS = 30
SETUP_CODE, TROUBLE_CODE = 6, 7


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """The work of a life, and the fault to inject."""

    scratch: Path
    seed: int
    step: str = ""
    """Step at which the fault strikes; empty for none."""
    at: int = 1
    """Strike when the step is reached for the n-th time."""
    mutant: str = ""

    @property
    def folder(self) -> Path:
        return self.scratch / "data"

    @property
    def broken(self) -> Path:
        """Exists once the step was reached."""
        return self.scratch / "broken"

    @property
    def met(self) -> Path:
        """Errors, one per line."""
        return self.scratch / "met"


opened: KeyedWorld | None = None
"""The world of this process."""


def start(job: Job) -> BaseProcess:
    """Start a life in a new process of the fork server, which has no threads."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.torture.keyed_lake.warm"])
    process = context.Process(target=live, args=(job,))
    process.start()
    return process


def live(job: Job) -> None:
    """Run the life and exit, with 0 when the table holds all changes."""
    from tests.torture.keyed_lake.breaks import install
    from tests.torture.keyed_lake.mutants import MUTANTS

    logging.disable(logging.CRITICAL)
    code = SETUP_CODE
    try:
        if job.mutant:
            MUTANTS[job.mutant][0]()
        if job.step:
            install(job)
        code = TROUBLE_CODE
        _live(job)
        code = 0
    except BaseException:  # noqa: BLE001 - the process must end here and report why
        report(job.met, traceback.format_exc())
    finally:
        os._exit(code)


def _live(job: Job) -> None:
    global opened
    rand = Random(job.seed)
    with keyed_world(job.folder, partitions=2) as world:
        opened = world
        for number in range(ROUNDS):
            world.change(rand, CHANGES, KEYS)
            world.write(Operation.UPSERT, [new_row(rand, rand.randrange(KEYS)) for _ in range(8)])
            _freeze(world, job)
            maintenance = world.maintenance()
            if number == 2 or rand.random() < 0.3:
                maintenance.compact(NAME, is_all=number == 2)
            if number == 3:
                maintenance._expire(NAME, replace(maintenance._snapshots_kept(), is_purge=True))
                maintenance.remove_orphans(NAME, is_purge=True)
        _freeze(world, job)


def _freeze(world: KeyedWorld, job: Job) -> None:
    """As the lake does: after a failure, once more."""
    try:
        world.freeze()
    except FrazilError as error:
        report(job.met, f"{type(error).__name__} {error}")
        world.freeze()


def report(path: Path, text: str) -> None:
    """Append a line that survives a kill of this process."""
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(descriptor, " | ".join(text.splitlines()).encode() + b"\n")
    os.close(descriptor)
