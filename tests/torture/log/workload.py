"""A real process that appends to a real disk until it is killed.

It is forked, so a cycle costs milliseconds. Its requests and responses go to the recorder; the
producers' state is rebuilt from that history, as a client keeps it on its own side.
"""

from __future__ import annotations

import logging
import os
import threading
import traceback
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from random import SystemRandom

from frazil.disk import RealDisk
from frazil.errors import FrazilError
from frazil.log import Log, exit_process
from frazil.model import Rand, SystemClock
from frazil.settings import LogConfig, TopicConfig
from tests.torture.checker import Verdict, check
from tests.torture.history import Attempts, Events, Sent
from tests.torture.log.actors import KINDS, TOPIC, Actor
from tests.torture.log.sim import observe

PARTITIONS = 2
ACTORS = 6
CONFIG = LogConfig(segment_bytes_max=64 * 1024, disk_bytes_max=64 * 1024 * 1024)
TOPIC_CONFIG = TopicConfig(partitions=PARTITIONS, awaits_lake=True, retention_ms=0)
OPENING, READY = b"o", b"r"


def actors_of(history: Iterable[Sent], rand: Rand) -> list[Actor]:
    """Rebuild the producers from the history: acknowledged batches, and batches to retry."""
    actors = [
        Actor(n, KINDS[n % 3], n % PARTITIONS, Rand(rand.random()), 1500)
        for n in range(1, ACTORS + 1)
    ]
    for sent in sorted(history, key=lambda s: s.sequence):
        actor = actors[sent.producer - 1]
        batch = actor.batches[sent.sequence] = Attempts(sent, is_unknown=sent.outcome == "info")
        actor.sequence = max(actor.sequence, sent.sequence + sent.count)
        if batch.sent.outcome == "ok":
            actor.acknowledged.append(sent)
        elif actor.kind != "plain":
            actor.open.append(sent.sequence)
    return actors


def open_log(folder: Path, *, threaded: bool) -> Log:
    log = Log.open(
        RealDisk(folder),
        CONFIG,
        clock=SystemClock(),
        rand=SystemRandom(),
        holder="a torture test",
        fatal=exit_process,
        threaded=threaded,
    )
    log.create_topic(TOPIC, TOPIC_CONFIG)
    return log


def fork(
    folder: Path, actors: list[Actor], events: Events, phases: int, seconds: float, errors: Path
) -> int:
    """Start the process and return its id.

    It writes OPENING and READY to the pipe `phases`, and its stderr to the file `errors`.
    """
    child = os.fork()
    if child:
        return child
    try:
        os.dup2(os.open(errors, os.O_CREAT | os.O_TRUNC | os.O_WRONLY), 2)
        logging.disable(logging.CRITICAL)
        os.write(phases, OPENING)
        log = open_log(folder, threaded=True)
        os.write(phases, READY)
        run(log, actors, events, seconds)
        os._exit(0)
    except BaseException:  # noqa: BLE001 - the forked process must end here, whatever happens
        traceback.print_exc()
        os._exit(1)


def run(log: Log, actors: list[Actor], events: Events, seconds: float) -> None:
    """Run producers, a subscriber and maintenance, each in its own thread, then close the log."""
    stop = threading.Event()
    threads = [threading.Thread(target=produce, args=(log, a, events, stop)) for a in actors]
    threads += [
        threading.Thread(target=subscribe, args=(log, stop)),
        threading.Thread(target=maintain, args=(log, stop)),
    ]
    for thread in threads:
        thread.start()
    stop.wait(seconds)
    stop.set()
    for thread in threads:
        thread.join()
    log.close()


def produce(log: Log, actor: Actor, events: Events, stop: threading.Event) -> None:
    verdict = Verdict()
    while not stop.is_set():
        actor.send(log, events)
        if actor.rand.random() < 0.1:
            actor.repeat(log)
        for answer in [*actor.waiting.values(), *(a for _, a in actor.repeats)]:
            with suppress(FrazilError):
                answer.result(timeout=30)
        actor.collect(verdict, events)
        for _ in verdict.examples:
            events.write("untrue", actor.number)
        verdict.examples.clear()


def subscribe(log: Log, stop: threading.Event) -> None:
    subscriber = log.subscribe("reader", TOPIC, "earliest")
    while not stop.wait(0.002):
        for claim in subscriber.claim(50):
            claim.ack()
        subscriber.step()


def maintain(log: Log, stop: threading.Event) -> None:
    while not stop.wait(0.01):
        for partition in log.topic(TOPIC).partitions:
            log.publish(TOPIC, partition.index, partition.view.durable_watermark)
        log.maintain()


def judge(
    folder: Path, history: list[Sent], seen: dict[int, dict[int, tuple[int, int]]]
) -> Verdict:
    """Open the log, compare all records with the history, and add them to `seen`."""
    try:
        log = open_log(folder, threaded=False)
        observed = {p: observe(log, TOPIC, p) for p in range(PARTITIONS)}
        log.close()
    except FrazilError as error:
        verdict = Verdict()
        verdict.add("untrue", repr(error))
        return verdict
    verdict = check(history, observed, seen)
    for partition, view in observed.items():
        for offset, identity in view.records:
            if identity is not None:
                seen.setdefault(partition, {})[offset] = identity
    return verdict
