"""What a running load has done: each task counts files, bytes and rows in a small file.

Spark reports only finished tasks, and a task may have 64 MiB. So each task overwrites three numbers
in a file of its own, in Spark's temporary folder. A task on another machine cannot; then it does
not count. No load depends on these numbers.
"""

from __future__ import annotations

import struct
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from frazil.disk import File, RealDisk
from frazil.lake import JobGroup
from frazil.load.stages.stage import StageStore
from frazil.load.stages.staged_file import StagedFile
from frazil.model import NS_PER_MS, Clock

NUMBERS = struct.Struct("<qqq")
"""Files, bytes and rows of one task."""
WRITE_INTERVAL_MS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgressSlot:
    """The file that a task counts in."""

    folder: str
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkDone:
    """Counts of a step."""

    file_count: int = 0
    size_bytes: int = 0
    row_count: int = 0


@dataclass(slots=True, kw_only=True)
class LoadProgress:
    """What a running load is doing. Set by its thread, read by any."""

    group: JobGroup
    statement: str = ""
    who: str = ""
    start_ms: int = 0
    folder: Path | None = None
    """For the files that tasks count in; None: they do not count."""
    step: str = "listing files"
    file_count: int = 0
    size_bytes: int = 0
    step_count: int = 0

    @property
    def id(self) -> str:
        return self.group.name

    def begin(self, step: str) -> None:
        """Begin a step whose tasks count anew."""
        self.remove()
        self.step_count += 1
        self.step = step

    def expect(self, files: list[StagedFile]) -> None:
        """Set the files that this load is about."""
        self.file_count = len(files)
        self.size_bytes = sum(file.size_bytes for file in files)

    def slot(self, index: int) -> ProgressSlot | None:
        """Return where a task of the current step counts."""
        if self.folder is None:
            return None
        return ProgressSlot(folder=str(self.folder), name=f"{self._prefix}{index}")

    def tasks(self) -> tuple[int, int]:
        """Return finished and all tasks of the current step."""
        return self.group.progress()

    def done(self) -> WorkDone:
        """Return what the tasks of the current step have counted."""
        sums = [0, 0, 0]
        for path in self._files():
            with suppress(OSError):  # the step has ended meanwhile
                data = path.read_bytes()
                if len(data) == NUMBERS.size:
                    sums = [a + b for a, b in zip(sums, NUMBERS.unpack(data), strict=True)]
        return WorkDone(file_count=sums[0], size_bytes=sums[1], row_count=sums[2])

    def remove(self) -> None:
        """Remove the files of the current step."""
        for path in self._files():
            with suppress(OSError):  # Spark's next start empties the folder
                path.unlink(missing_ok=True)

    def _files(self) -> list[Path]:
        return [] if self.folder is None else list(self.folder.glob(f"{self._prefix}*"))

    @property
    def _prefix(self) -> str:
        return f"{self.group.name}.{self.step_count}."


class TaskProgress:
    """Counts what one task has done. Owned by the task, which never fails because of it."""

    def __init__(self, slot: ProgressSlot | None, clock: Clock) -> None:
        self._slot = slot
        self._file: File | None = None
        self._clock = clock
        self._written_ns: int | None = None
        self._files = self._bytes = self._rows = 0

    def reading(self, position: int, rows: int) -> None:
        """A file was read up to a position; so far it has so many rows."""
        now_ns = self._clock.monotonic_ns()
        last_ns = self._written_ns
        if last_ns is None or now_ns - last_ns >= WRITE_INTERVAL_MS * NS_PER_MS:
            self._written_ns = now_ns
            self._write(self._files, self._bytes + position, self._rows + rows)

    def finished(self, file: StagedFile, rows: int) -> None:
        """A file was read to its end."""
        self._files += 1
        self._bytes += file.size_bytes
        self._rows += rows
        self._write(self._files, self._bytes, self._rows)

    def _write(self, files: int, size: int, rows: int) -> None:
        if self._slot is None or not Path(self._slot.folder).is_dir():
            return
        try:
            if self._file is None:
                self._file = RealDisk(self._slot.folder).open(self._slot.name, "create")
            self._file.write_at(0, NUMBERS.pack(files, size, rows))
        except OSError:  # another attempt of this task counts
            self._slot = None

    def close(self) -> None:
        """Close its file."""
        if self._file is not None:
            self._file.close()


class WatchedStore:
    """A store that tells how far the file that it opened last was read."""

    def __init__(self, store: StageStore) -> None:
        self._store = store
        self._stream: IO[bytes] | None = None
        self._size = 0

    def open(self, file: StagedFile) -> IO[bytes]:
        self._stream = self._store.open(file)
        self._size = file.size_bytes
        return self._stream

    def check(self, file: StagedFile, stream: IO[bytes]) -> None:
        self._store.check(file, stream)

    def position(self) -> int:
        """Return the position in the file; formats that read its end first are ahead."""
        if self._stream is None or self._stream.closed:
            return self._size
        return min(self._stream.tell(), self._size)
