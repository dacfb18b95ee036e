"""FILES: a source that follows the lines of the files in a folder.

A stream is a file, known by its inode, so that a rotation by renaming goes on where it was. Its
position is

    generation,offset,bytes,digest

the offset of the next line, and a digest of the first bytes before it. A file whose first bytes
have changed, or that has become shorter, was truncated or written anew: it is read from its start,
as another generation. A line counts once it has its line break.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated

import msgspec

from frazil.connectors.contract import (
    BATCH_BYTES,
    ConnectorContext,
    ConnectorType,
    KnownPosition,
    SourceBatch,
)
from frazil.connectors.files.local_files import (
    HEAD_BYTES,
    FolderFile,
    LocalFile,
    files_in,
    fingerprint,
    folder_below,
    matches,
)
from frazil.errors import Corrupt, Malformed
from frazil.log import Record
from frazil.model import NS_PER_MS, Clock, KiB, MiB

OPEN_MAX = 256
"""Files that stay open: one of them can be read to its end although it was deleted."""
GONE_NS = 2_000 * NS_PER_MS
"""How long a deleted file is followed: whoever wrote it may still do so."""
GONE_LOOKS = 3
POLL_BYTES = 4 * MiB
RECORDS_MAX = 10_000
"""Of one batch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FilesOptions:
    """Options of TYPE files."""

    folder: str
    pattern: str = "*"
    """Names of files, with * and ?."""
    poll_interval_ms: Annotated[int, msgspec.Meta(ge=10, le=60_000)] = 200
    line_bytes_max: Annotated[int, msgspec.Meta(ge=1, le=8 * MiB)] = 256 * KiB
    """A longer line becomes several records."""

    def __post_init__(self) -> None:
        if not self.pattern or "/" in self.pattern:
            raise Malformed("PATTERN is for names of files, such as '*.log'; it has no /")


@dataclass(slots=True)
class _Tail:
    """A file, and how far it was read."""

    inode: int
    name: str
    generation: int = 0
    offset: int = 0
    head_bytes: int = 0
    head: str = ""
    file: LocalFile | None = None
    gone_ns: int | None = None
    """When it was not in the folder any more."""
    gone_looks: int = 0
    seen: tuple[int, int] | None = None
    """Size and time of the file when everything of it had been read."""
    used: int = 0
    """The poll in which it last had something new."""

    @property
    def stream(self) -> str:
        return f"{self.inode:x}"

    def is_same(self, file: LocalFile) -> bool:
        """Whether the first bytes of the file are still those that were read."""
        return not self.head_bytes or file.fingerprint(self.head_bytes) == self.head

    @property
    def position(self) -> bytes:
        return f"{self.generation},{self.offset},{self.head_bytes},{self.head}".encode()


@dataclass(slots=True)
class FilesSource:
    """Implements `Source`."""

    options: FilesOptions
    folder: str
    clock: Clock
    batch_bytes: int
    _tails: dict[int, _Tail] = field(default_factory=dict)
    _count: int = 0
    """Polls so far."""

    def open(self, known: Sequence[KnownPosition]) -> None:
        for each in known:
            tail = _tail_of(each)
            self._tails[tail.inode] = tail

    def poll(self, timeout_s: float) -> Sequence[SourceBatch]:
        batches = self._look()
        if not batches:
            self.clock.sleep(min(timeout_s, self.options.poll_interval_ms / 1000))
            batches = self._look()
        return batches

    def commit(self, stream: str, position: bytes) -> None:
        """Nothing to do: files do not know who has read them."""

    def close(self) -> None:
        for tail in self._tails.values():
            if tail.file is not None:
                tail.file.close()
                tail.file = None

    def _look(self) -> list[SourceBatch]:
        """Return what is new in all files, a limited amount at a time; the file that has waited
        longest comes first."""
        self._count += 1
        found = {file.inode: file for file in files_in(self.folder)}
        for inode, file in found.items():
            if inode in self._tails:
                self._tails[inode].name = file.name
            elif matches(file.name, self.options.pattern):
                self._tails[inode] = _Tail(inode, file.name)
        batches: list[SourceBatch] = []
        left = POLL_BYTES
        for tail in sorted(self._tails.values(), key=lambda tail: tail.used):
            if left <= 0:
                break
            batch = self._next_of(tail, found.get(tail.inode))
            if batch is not None:
                tail.used = self._count
                batches.append(batch)
                left -= sum(len(record.value or b"") + 1 for record in batch.records)
        self._close_idle()
        return batches

    def _next_of(self, tail: _Tail, found: FolderFile | None) -> SourceBatch | None:
        if found is None:
            return self._last_of(tail)
        tail.gone_ns, tail.gone_looks = None, 0
        seen = found.size_bytes, found.modified_ns
        if seen == tail.seen:
            return None
        if tail.file is None:
            tail.file = LocalFile.open(self.folder, found)
        batch = None if tail.file is None else self._read(tail, tail.file)
        tail.seen = seen if batch is None and tail.file is not None else None
        return batch

    def _last_of(self, tail: _Tail) -> SourceBatch | None:
        """Read the rest of a file that is not in the folder any more; then its stream ends. A file
        that is renamed while the folder is listed may be missing once."""
        now_ns = self.clock.monotonic_ns()
        batch = None if tail.file is None else self._read(tail, tail.file)
        tail.gone_looks += 1
        if batch is not None or tail.gone_ns is None:
            tail.gone_ns = now_ns
            return batch
        if now_ns - tail.gone_ns < GONE_NS or tail.gone_looks < GONE_LOOKS:
            return None
        if tail.file is not None:
            batch = self._read(tail, tail.file, is_final=True)
            if batch is not None:
                return batch
            tail.file.close()
        del self._tails[tail.inode]
        return SourceBatch(records=(), position=b"", stream=tail.stream, is_last=True)

    def _read(self, tail: _Tail, file: LocalFile, *, is_final: bool = False) -> SourceBatch | None:
        """Read lines from where a file was left. With `is_final` the last line needs no break."""
        if file.size() < tail.offset or not tail.is_same(file):
            tail.generation += 1
            tail.offset, tail.head_bytes, tail.head = 0, 0, ""
        size = max(self.batch_bytes, self.options.line_bytes_max + 2)
        data = file.read(tail.offset, size)
        lines, used = _lines(data, self.options.line_bytes_max, is_final=is_final)
        if not lines:
            return None
        head_bytes = min(HEAD_BYTES, tail.offset + used)
        head = file.fingerprint(head_bytes)
        is_first = tail.offset == 0
        if not tail.is_same(file) or (is_first and head != fingerprint(data[:head_bytes])):
            return None  # truncated while it was read: the next look begins anew
        tail.offset += used
        tail.head_bytes, tail.head = head_bytes, head
        now_ms = self.clock.wall_ms()
        headers = (("file", tail.name.encode(errors="surrogateescape")),)
        records = [
            Record(offset=0, timestamp_ms=now_ms, key=None, value=line, headers=headers)
            for line in lines
        ]
        return SourceBatch(records=records, position=tail.position, stream=tail.stream)

    def _close_idle(self) -> None:
        """Close files that had nothing new for the longest, if too many are open."""
        opened = [tail for tail in self._tails.values() if tail.file is not None]
        for tail in sorted(opened, key=lambda tail: tail.used)[: max(0, len(opened) - OPEN_MAX)]:
            if tail.gone_ns is None and tail.file is not None:
                tail.file.close()
                tail.file = None


def _lines(data: bytes, line_bytes_max: int, *, is_final: bool) -> tuple[list[bytes], int]:
    """Return the whole lines of `data`, without their breaks, and the bytes that they take. A line
    that is too long comes in pieces."""
    lines: list[bytes] = []
    at = 0
    while at < len(data) and len(lines) < RECORDS_MAX:
        end = data.find(b"\n", at, at + line_bytes_max + 1)
        if end >= 0:
            line, after = data[at:end].removesuffix(b"\r"), end + 1
        elif len(data) - at > line_bytes_max:
            line, after = data[at : at + line_bytes_max], at + line_bytes_max
        elif is_final:
            line, after = data[at:], len(data)
        else:
            break
        lines.append(line)
        at = after
    return lines, at


def _tail_of(known: KnownPosition) -> _Tail:
    parts = known.position.decode(errors="replace").split(",")
    try:
        generation, offset, head_bytes = map(int, parts[:3])
        return _Tail(int(known.stream, 16), "", generation, offset, head_bytes, parts[3])
    except (ValueError, IndexError):
        raise Corrupt(
            path=f"the position of stream {known.stream}",
            position=0,
            expected="generation,offset,bytes,digest",
            found=repr(known.position[:80]),
            hint="Another type of connector has written it: DROP the source, and create it again.",
        ) from None


def _source(options: FilesOptions, context: ConnectorContext) -> FilesSource:
    return FilesSource(
        options,
        folder_below(options.folder, context.roots),
        context.clock,
        min(BATCH_BYTES, context.batch_bytes_max // 2),
    )


FILES = ConnectorType(
    title="Lines of the files in a folder, as they are written",
    options=FilesOptions,
    source=_source,
)
