"""Connectors that do everything wrong, as a package of others: it imports nothing of the tests."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from frazil.connectors import (
    ConnectorContext,
    ConnectorType,
    KnownPosition,
    RecordError,
    SinkRecord,
    SourceBatch,
)
from frazil.errors import Malformed
from frazil.log import Record


@dataclass(frozen=True)
class NastyOptions:
    how: str
    good: int = 3
    """Batches before it begins."""


def batch(number: int, size: int = 10, count: int = 1) -> SourceBatch:
    records = [
        Record(offset=0, timestamp_ms=number, key=None, value=b"%d" % number + b"x" * size)
        for _ in range(count)
    ]
    return SourceBatch(records=records, position=b"%d" % number)


def _segv() -> None:
    ctypes.string_at(0)


def _garbage_on_socket() -> None:
    os.write(int(sys.argv[1]), b"\x10\x00\x00\x00 not a message...")
    time.sleep(60)


def _prints() -> None:
    while True:
        sys.stdout.write("noise " * 100)
        sys.stderr.write("more noise\n")


def _raises(error: BaseException) -> Callable[[], None]:
    def act() -> None:
        raise error

    return act


DEEDS: dict[str, Callable[[], Any]] = {
    "segv": _segv,
    "kill": lambda: os.kill(os.getpid(), signal.SIGKILL),
    "exit": lambda: sys.exit(0),
    "hang": lambda: time.sleep(1000),
    "garbage": _garbage_on_socket,
    "prints": _prints,
    "memory": lambda: bytearray(8 << 30),
    "fatal": _raises(Malformed("the table has no key; give it one")),
    "oops": _raises(RuntimeError("password=hunter2 was refused")),
    "eof": _raises(EOFError("the server has closed")),
    "no_batch": lambda: ["text"],
    "no_sequence": lambda: 7,
    "no_record": lambda: [SourceBatch(records=["x"], position=b"x")],  # type: ignore[list-item]
    "no_bytes": lambda: [
        SourceBatch(
            records=[Record(offset=0, timestamp_ms=1, key=None, value="text")],  # type: ignore[arg-type]
            position=b"x",
        )
    ],
    "no_position": lambda: [batch(3)],
    "long_position": lambda: [
        SourceBatch(records=batch(9).records, position=b"p" * 1025),
    ],
    "large": lambda: [batch(9, size=20 << 20)],
    "other_topic": lambda: [
        SourceBatch(records=batch(9).records, position=b"9", topic="otlp_logs"),
    ],
    "other_partition": lambda: [
        SourceBatch(records=batch(9).records, position=b"9", partition=5),
    ],
}


class Nasty:
    def __init__(self, options: NastyOptions, context: ConnectorContext) -> None:
        self._options = options
        self._done = 0

    def open(self, known: Sequence[KnownPosition]) -> None:
        self._done = max([int(each.position) for each in known], default=0)

    def poll(self, timeout_s: float) -> Any:
        if self._options.how == "flood":
            self._done += 1
            return [batch(self._done, size=1000, count=1000)]
        if self._done < self._options.good:
            self._done += 1
            return [batch(self._done)]
        if self._options.how == "deaf":
            time.sleep(timeout_s)
            return ()
        return DEEDS[self._options.how]() or ()

    def commit(self, stream: str, position: bytes) -> None: ...

    def close(self) -> None:
        if self._options.how == "deaf":
            time.sleep(1000)


class Writer:
    """A sink that appends lines to a file: topic, partition, offset, value."""

    def __init__(self, options: WriterOptions, context: ConnectorContext) -> None:
        self._path = options.path
        self._refuses = options.refuses

    def open(self) -> None: ...

    def put(self, records: Sequence[SinkRecord]) -> Sequence[RecordError]:
        refused = []
        with Path(self._path).open("ab") as file:
            for each in records:
                value = each.record.value or b""
                if self._refuses and value.endswith(self._refuses.encode()):
                    refused.append(
                        RecordError(
                            partition=each.partition, offset=each.record.offset, reason="no good"
                        )
                    )
                else:
                    file.write(b"%d %d %s\n" % (each.partition, each.record.offset, value))
        return refused

    def flush(self) -> None: ...

    def close(self) -> None: ...


@dataclass(frozen=True)
class WriterOptions:
    path: str
    refuses: str = ""


NASTY = ConnectorType(title="Does it wrong", options=NastyOptions, source=Nasty)
WRITER = ConnectorType(title="Appends to a file", options=WriterOptions, sink=Writer)
