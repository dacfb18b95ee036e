"""History of appends and their outcomes.

The outcome of a batch is `ok` (acknowledged), `fail` (certainly not stored) or `info` (unknown).
The recorder is a separate process that reads events from a pipe, so the events of a killed process
survive it.
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
    """One batch: `count` records of a producer, with sequence numbers from `sequence`."""

    producer: int
    sequence: int
    count: int
    partition: int
    outcome: Outcome = "info"
    offset: int = -1


def outcome_of(error: BaseException) -> Outcome:
    """Return `fail` for errors that guarantee nothing was stored, else `info`."""
    if isinstance(error, Rejected | Overloaded | Unavailable):
        return "fail"
    assert isinstance(error, FrazilError | OSError), error
    return "info"


class Events:
    """Writes events to the recorder, one `write` per event: a pipe write this small is atomic."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def write(self, kind: str, *facts: int) -> None:
        os.write(self._descriptor, json.dumps([kind, *facts]).encode() + b"\n")

    def invoke(self, sent: Sent) -> None:
        self.write("invoke", sent.producer, sent.sequence, sent.count, sent.partition)


class Recorder:
    """Keeps the history in a file, across the processes that write it."""

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
        """Return all events of processes that have ended."""
        self.events.write("flush")
        self._answers.recv()
        lines = self._path.read_bytes().splitlines()
        return [json.loads(line) for line in lines]

    def forget(self) -> None:
        """Start an empty history."""
        self.events.write("forget")
        self._answers.recv()

    def close(self) -> None:
        self.events.write("end")
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
class Attempts:
    """The outcome of one batch over all its attempts."""

    sent: Sent
    waiting: int = 0
    is_unknown: bool = False

    def take(self, outcome: Outcome, offset: int) -> None:
        self.waiting -= 1
        self.is_unknown |= outcome == "info"
        if outcome == "ok":
            self.sent = replace(self.sent, outcome="ok", offset=offset)

    def final(self) -> Sent:
        if self.sent.outcome == "ok":
            return self.sent
        is_unknown = self.is_unknown or self.waiting > 0
        return replace(self.sent, outcome="info" if is_unknown else "fail")


def history_of(events: Iterable[list[str | int]]) -> list[Sent]:
    """Return the final outcome of each batch.

    An attempt without a response leaves it unknown, unless a later attempt is acknowledged.
    """
    batches: dict[tuple[int, int], Attempts] = {}
    for kind, *facts in events:
        if kind not in ("invoke", "ok", "fail", "info"):
            continue
        producer, sequence, count, partition = (int(f) for f in facts[:4])
        sent = Sent(producer=producer, sequence=sequence, count=count, partition=partition)
        batch = batches.setdefault((producer, sequence), Attempts(sent))
        if kind == "invoke":
            batch.waiting += 1
        else:
            batch.take(cast("Outcome", kind), int(facts[4]))
    return [batch.final() for batch in batches.values()]
