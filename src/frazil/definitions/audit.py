"""Audit: who sent which statement when, and what became of it.

    definitions/audit.ndjson      one JSON object per line, appended and synced
    definitions/audit.old.ndjson  the file before, once it has become too large

A statement is noted before it runs and again when it ends: one that a crash interrupted is there,
without an outcome. Credentials are masked before anything is written.
"""

from __future__ import annotations

import re
import threading
from datetime import UTC, datetime, timedelta

import msgspec

from frazil.definitions.store import FOLDER
from frazil.disk import Disk, LineLog, is_full
from frazil.errors import Unavailable
from frazil.model import Clock, MiB

PATH = f"{FOLDER}/audit.ndjson"
OLD_PATH = f"{FOLDER}/audit.old.ndjson"
FILE_BYTES_MAX = 8 * MiB
TEXT_CHARS_MAX = 8192
"""Of a statement in the audit."""
MESSAGE_CHARS_MAX = 1000
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MASKED = "***"
_USER_INFO = re.compile(r"(\b\w{1,20}://)[^/\s'@]{0,1000}@")
_SECRET = re.compile(
    r"(?i)((?:password|passwd|secret|token|credential|api_?key|access_?key|account_?key|"
    r"signature|sas)[\w-]{0,40}[\"']?\s{0,10}(?:=>|=|:)?\s{0,10})"
    r"('(?:''|[^'])*'|\"(?:\"\"|[^\"])*\"|[^\s,;)'\"&]+)"
)


class AuditEntry(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A statement that began, or that ended (`outcome` is set)."""

    id: int
    time: datetime
    who: str
    head: str
    """First words, such as CREATE VIEW."""
    statement: str
    outcome: str = ""
    """ok, or the kind of the error; empty if it runs, or a crash interrupted it."""
    message: str = ""
    duration_ms: int = 0


class Audit:
    """The audit of a data folder. Any thread may call it."""

    def __init__(self, disk: Disk, clock: Clock) -> None:
        self._lines = LineLog(disk, PATH, OLD_PATH, FILE_BYTES_MAX)
        self._clock = clock
        self._lock = threading.Lock()
        self._next_id: int | None = None
        """Read from the files with the first statement."""

    def begin(self, who: str, head: str, text: str) -> AuditEntry:
        """Note a statement before it runs. Durable on return; `Unavailable` if it cannot be
        noted: then it must not run."""
        with self._lock:
            if self._next_id is None:
                self._next_id = 1 + max((entry.id for entry in self.entries()), default=0)
            entry = AuditEntry(
                id=self._next_id,
                time=self._now(),
                who=who,
                head=head,
                statement=masked(text)[:TEXT_CHARS_MAX],
            )
            self._append(entry)
            self._next_id += 1
        return entry

    def end(self, begun: AuditEntry, outcome: str, message: str, duration_ms: int) -> None:
        """Note how a statement ended."""
        entry = msgspec.structs.replace(
            begun,
            outcome=outcome,
            message=masked(message)[:MESSAGE_CHARS_MAX],
            duration_ms=duration_ms,
        )
        with self._lock:
            self._append(entry)

    def entries(self) -> list[AuditEntry]:
        """Return all statements, each once, the oldest first. Lines that a crash has cut are left
        out. `Unavailable` if a file cannot be read."""
        try:
            lines = self._lines.lines()
        except OSError as error:
            raise Unavailable(f"the audit {PATH} cannot be read: {error}") from error
        found: dict[int, AuditEntry] = {}
        for line in lines:
            try:
                entry = msgspec.json.decode(line, type=AuditEntry)
            except (msgspec.MsgspecError, UnicodeDecodeError):
                continue
            found[entry.id] = entry
        return list(found.values())

    def _now(self) -> datetime:
        return _time(self._clock.wall_ms())

    def _append(self, entry: AuditEntry) -> None:
        try:
            self._lines.append(msgspec.json.encode(entry))
        except OSError as error:
            why = "the disk is full" if is_full(error) else str(error)
            raise Unavailable(f"the audit {PATH} cannot be written: {why}") from error


def masked(text: str) -> str:
    """Return a text without what looks like a credential."""
    return _SECRET.sub(rf"\1'{_MASKED}'", _USER_INFO.sub(rf"\1{_MASKED}@", text))


def _time(wall_ms: int) -> datetime:
    return EPOCH + timedelta(milliseconds=wall_ms)
