"""What was asked and what was answered.

Each batch gets three possible outcomes: `ok` is acknowledged, `fail` certainly not stored, `info`
unknown. The recorder is a process of its own that reads events from a pipe: what a killed process
has said before its end is not lost with it.
"""

from __future__ import annotations

import json
import multiprocessing
import os
from collections.abc import Iterable
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Literal, cast

from frazil.errors import FrazilError, Overloaded, Rejected, Unavailable

Outcome = Literal["ok", "fail", "info"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """One batch: `count` records of a producer, numbered from `sequence`."""

    producer: int
    sequence: int
    count: int
    partition: int
    outcome: Outcome = "info"
    offset: int = -1


def outcome_of(error: BaseException) -> Outcome:
    """Which answers promise that nothing was stored."""
    if isinstance(error, Rejected | Overloaded | Unavailable):
        return "fail"
    assert isinstance(error, FrazilError | OSError), error
    return "info"


class Events:
    """Writes events to the recorder. One `write` per event: a pipe takes each whole or not."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def say(self, kind: str, *facts: int) -> None:
        os.write(self._descriptor, json.dumps([kind, *facts]).encode() + b"\n")

    def invoke(self, sent: Sent) -> None:
        self.say("invoke", sent.producer, sent.sequence, sent.count, sent.partition)

    def answer(self, sent: Sent) -> None:
        self.say(
            sent.outcome, sent.producer, sent.sequence, sent.count, sent.partition, sent.offset
        )


class Recorder:
    """Keeps the history in a file while processes come and go."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._reading, self.descriptor = os.pipe()
        context = multiprocessing.get_context("fork")
        self._answers, answers = context.Pipe(duplex=False)
        self._process = context.Process(target=_record, args=(self, answers), daemon=True)
        self._process.start()
        os.close(self._reading)
        self.events = Events(self.descriptor)

    def read(self) -> list[list[str | int]]:
        """Every event said so far by processes that have ended."""
        self.events.say("flush")
        self._answers.recv()
        lines = self._path.read_bytes().splitlines()
        return [json.loads(line) for line in lines]

    def forget(self) -> None:
        """Begin a new history."""
        self.events.say("forget")
        self._answers.recv()

    def close(self) -> None:
        self.events.say("end")
        self._process.join()
        os.close(self.descriptor)

    def serve(self, answers: Connection) -> None:
        buffer = b""
        with self._path.open("wb") as file:
            while True:
                buffer += os.read(self._reading, 65536)
                *lines, buffer = buffer.split(b"\n")
                for line in lines:
                    kind = json.loads(line)[0]
                    if kind == "end":
                        return
                    if kind == "forget":
                        file.seek(0)
                        file.truncate()
                    elif kind != "flush":
                        file.write(line + b"\n")
                        continue
                    file.flush()
                    os.fsync(file.fileno())
                    answers.send(True)


def _record(recorder: Recorder, answers: Connection) -> None:
    recorder.serve(answers)


@dataclass(slots=True)
class Fate:
    """What is known of one batch over all its tries."""

    sent: Sent
    waiting: int = 0
    is_unsure: bool = False

    def take(self, outcome: Outcome, offset: int) -> None:
        self.waiting -= 1
        self.is_unsure |= outcome == "info"
        if outcome == "ok":
            self.sent = replace(self.sent, outcome="ok", offset=offset)

    def final(self) -> Sent:
        if self.sent.outcome == "ok":
            return self.sent
        is_unsure = self.is_unsure or self.waiting > 0
        return replace(self.sent, outcome="info" if is_unsure else "fail")


def history_of(events: Iterable[list[str | int]]) -> list[Sent]:
    """The last word on each batch. A try without an answer leaves it unsure for ever, unless a
    later try is acknowledged."""
    fates: dict[tuple[int, int], Fate] = {}
    for kind, *facts in events:
        if kind not in ("invoke", "ok", "fail", "info"):
            continue
        producer, sequence, count, partition = (int(f) for f in facts[:4])
        sent = Sent(producer=producer, sequence=sequence, count=count, partition=partition)
        fate = fates.setdefault((producer, sequence), Fate(sent))
        if kind == "invoke":
            fate.waiting += 1
        else:
            fate.take(cast("Outcome", kind), int(facts[4]))
    return [fate.final() for fate in fates.values()]
