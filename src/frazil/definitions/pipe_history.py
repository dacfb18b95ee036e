"""PipeHistory: the runs of pipes, and how each ended.

definitions/pipe_history.ndjson      one JSON object per attempt that has ended
definitions/pipe_history.old.ndjson  the file before, once it has become too large
"""

from __future__ import annotations

import threading
from datetime import datetime
from typing import Literal

import msgspec

from frazil.definitions.store import FOLDER
from frazil.disk import Disk, LineLog
from frazil.errors import Unavailable
from frazil.model import MiB

PATH = f"{FOLDER}/pipe_history.ndjson"
OLD_PATH = f"{FOLDER}/pipe_history.old.ndjson"
FILE_BYTES_MAX = 8 * MiB
"""About 30,000 runs; the file before is kept."""
MESSAGE_CHARS_MAX = 1000

PipeOutcome = Literal["running", "ok", "failed", "interrupted", "cancelled"]
"""A crash or a stop of the node interrupts; DROP, REPLACE and clients that leave cancel."""
PipeTrigger = Literal["schedule", "new files", "statement"]


class PipeRun(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One attempt of a run."""

    pipe: str
    run_id: int
    """Attempts of one run share it. Larger for later runs, also of other pipes."""
    attempt: int = 1
    trigger: PipeTrigger
    table: str
    started_at: datetime
    ended_at: datetime | None = None
    outcome: PipeOutcome = "running"
    files: int = 0
    """Files whose rows were loaded."""
    rows: int = 0
    errors: int = 0
    """Rows and files that were left out."""
    message: str = ""


class PipeHistory:
    """The runs of a data folder. Any thread may call it."""

    def __init__(self, disk: Disk) -> None:
        self._lines = LineLog(disk, PATH, OLD_PATH, FILE_BYTES_MAX)
        self._lock = threading.Lock()
        self._running: dict[str, PipeRun] = {}

    def begin(self, run: PipeRun) -> None:
        """Show a run that has begun."""
        with self._lock:
            self._running[run.pipe] = run

    def end(self, run: PipeRun) -> None:
        """Note a run that has ended. Durable on return; `OSError` if it cannot be."""
        with self._lock:
            self._running.pop(run.pipe, None)
            message = run.message[:MESSAGE_CHARS_MAX]
            self._lines.append(msgspec.json.encode(msgspec.structs.replace(run, message=message)))

    def runs(self) -> list[PipeRun]:
        """Return all attempts, in the order in which they ended; those that run come last.
        `Unavailable` if a file cannot be read."""
        with self._lock:
            try:
                lines = self._lines.lines()
            except OSError as error:
                raise Unavailable(f"the history {PATH} cannot be read: {error}") from error
            running = list(self._running.values())
        found: dict[tuple[str, int, int], PipeRun] = {}
        for line in lines:
            try:
                run = msgspec.json.decode(line, type=PipeRun)
            except (msgspec.MsgspecError, UnicodeDecodeError):
                continue
            found[run.pipe, run.run_id, run.attempt] = run
        return [*found.values(), *running]
