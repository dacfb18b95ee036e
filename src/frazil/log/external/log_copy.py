"""LogCopy: copies the durable part of a log to another disk, while its owner writes.

    begin     every segment from the start of the log on, producer state, progress of subscribers
    ...       the caller copies what depends on the log, such as the tables of the lake
    finish    what became durable since; then the watermark file, which says where the copy ends

So the copy starts where the log started before the caller's part, and ends where it ended after:
whatever the caller has copied in between, the log continues it without a gap.

Segments are copied, never linked: their owner overwrites trimmed ones. It writes a new header
first, so bytes read before an unchanged header are those of the segment. An attempt that meets a
trimmed or rewritten segment is repeated. Every copied batch is checked.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass, field

from frazil.disk import (
    SALT_BYTES,
    CopiedFile,
    File,
    FileCopier,
    Hasher,
    Mode,
    copy_bytes,
)
from frazil.errors import Conflict, Corrupt
from frazil.log.checkpoint import STATE, STATE_NAME, read_state
from frazil.log.external.observer import PartitionObserver
from frazil.log.index import NO_TIME
from frazil.log.recovery import SCRATCH_SUFFIXES
from frazil.log.segment import (
    HEADER_BYTES,
    REPAIR_HINT,
    LogSegment,
    SegmentHeader,
    decode_segment_header,
    identity_of,
    side_name,
    walk_batches,
)
from frazil.log.subscribers import progress_path, subscriber_names
from frazil.log.topic import (
    CONFIG_NAME,
    FOLDER,
    StoredTopic,
    partition_folder,
    read_topic,
    topic_names,
)
from frazil.log.view import PartitionView, SegmentView
from frazil.log.watermarks import NAME as WATERMARKS_NAME
from frazil.log.watermarks import SegmentTail, StablePoint, WatermarkFile, read_watermarks
from frazil.model import Rand

ATTEMPTS_MAX = 20
"""An attempt fails because segments were trimmed or rewritten; the next continues it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CopiedPartition:
    """The offsets of one partition that a copy holds."""

    topic: str
    partition: int
    start_offset: int
    end_offset: int


@dataclass(slots=True, kw_only=True)
class _CopiedSegment:
    """A segment in the copy, up to `size_bytes`."""

    path: str
    header: SegmentHeader
    end_offset: int
    size_bytes: int = HEADER_BYTES
    max_timestamp_ms: int = NO_TIME
    hasher: Hasher = field(default_factory=hashlib.sha256)


class LogCopy:
    """A copy in the making. Owned by one thread; changes nothing in the source.

    `is_owned` says whether a process has the log open: if none has, the watermark files may be old.
    """

    def __init__(
        self, copier: FileCopier, *, is_owned: Callable[[], bool], rand: Rand, now_ms: int
    ) -> None:
        self._copier = copier
        self._is_owned = is_owned
        self._rand = rand
        self._now_ms = now_ms
        self._topics: dict[str, StoredTopic | None] = {}
        self._was_owned = True
        self._partitions: dict[tuple[str, int], _PartitionCopy] = {}

    def begin(self) -> None:
        """Copy everything that is durable. Call it again if `finish` raises `Conflict`."""
        source, is_owned = self._copier.source, self._is_owned()
        if not self._was_owned:
            for partition in self._partitions.values():
                partition.discard()
        self._was_owned = is_owned
        for path in list(self._copier.files):  # of an earlier attempt
            if path.startswith(f"{FOLDER}/") and not path.endswith(".log"):
                self._copier.remove(path)
        topics = self._stored_topics()
        if self._topics and topics != self._topics:  # partitions may be of other topics now
            for partition in self._partitions.values():
                partition.discard()
            self._partitions = {}
        self._topics = topics
        for topic, stored in topics.items():
            if stored is None:
                continue  # deleted meanwhile: `finish` finds out
            for index in range(stored.config.partitions):
                if (topic, index) not in self._partitions:
                    copy = _PartitionCopy(self._copier, topic, index)
                    self._partitions[topic, index] = copy
                self._partitions[topic, index].begin(is_owned=is_owned)
            self._copier.copy(f"{FOLDER}/{topic}/{CONFIG_NAME}")
        for name in subscriber_names(source):
            with suppress(FileNotFoundError):  # unsubscribed meanwhile
                self._copier.copy(progress_path(name))

    def _stored_topics(self) -> dict[str, StoredTopic | None]:
        source = self._copier.source
        return {name: read_topic(source, name) for name in topic_names(source)}

    def finish(self) -> list[CopiedPartition]:
        """Copy what became durable since `begin`, and close the copy.

        Raises `Conflict` if the log has trimmed what follows the copy, has a new topic, or was
        opened: the scan of an unowned log may have seen batches that its new owner undid.
        """
        is_owned = self._is_owned()
        if is_owned and not self._was_owned:
            raise Conflict("a process opened the log during the copy; copy again")
        if self._stored_topics() != self._topics:
            raise Conflict("a topic was created, changed or deleted during the copy; copy again")
        for partition in self._partitions.values():
            partition.extend(is_owned=is_owned)
        return [
            copy.close(self._rand, self._now_ms) for _, copy in sorted(self._partitions.items())
        ]


class _PartitionCopy:
    """The copy of one partition."""

    def __init__(self, copier: FileCopier, topic: str, index: int) -> None:
        self._copier = copier
        self._topic = topic
        self._index = index
        self._folder = partition_folder(topic, index)
        self._observer = PartitionObserver(copier.source, topic, index)
        self._segments: list[_CopiedSegment] = []
        self._is_begun = False
        self._start_offset = 0
        self._end_offset = 0
        self._stable = StablePoint(0, 0)
        """The end of the last whole copy of a segment."""
        copier.make_folder(self._folder)

    def discard(self) -> None:
        """Forget what was copied; the next `begin` starts anew."""
        self._keep([])
        self._is_begun = False

    def begin(self, *, is_owned: bool) -> None:
        """Copy all segments, then what recovery needs beside them: saved before a segment is
        trimmed, it covers everything below the first copied one."""
        for _ in range(ATTEMPTS_MAX):
            self._attempt(is_owned=is_owned, may_restart=True)
            self._copy_side_files()
            saved_start = self._saved_start()
            if saved_start <= self._end_offset:
                self._trim(saved_start)
                return
        raise Conflict(f"{self._folder} is trimmed faster than it is copied; retry later")

    def _copy_side_files(self) -> None:
        for name in self._copier.source.list(self._folder):
            is_segment = name.endswith(".log") or name == WATERMARKS_NAME
            if is_segment or name.endswith(SCRATCH_SUFFIXES):
                continue
            with suppress(FileNotFoundError):  # an index that was trimmed with its segment
                self._copier.copy(f"{self._folder}/{name}")

    def _saved_start(self) -> int:
        """Return the start of the log in the copied producer state. Recovery trims up to it."""
        path = f"{self._folder}/{STATE_NAME}"
        try:
            body = read_state(self._copier.target, path, "")
        except Corrupt:
            return 0  # rebuilt from the log
        start: int = 0 if body is None else STATE.unpack_from(body)[0]
        return start

    def _trim(self, start_offset: int) -> None:
        if start_offset > self._start_offset:
            self._start_offset = start_offset
            self._keep([each for each in self._segments if each.end_offset > start_offset])

    def extend(self, *, is_owned: bool) -> None:
        """Copy what became durable since. Raises `Conflict` if that is trimmed already."""
        self._attempt(is_owned=is_owned, may_restart=False)

    def _attempt(self, *, is_owned: bool, may_restart: bool) -> None:
        reason: Exception | None = None
        for _ in range(ATTEMPTS_MAX):
            observer = self._observer
            view = observer.observe(is_stale=True) if is_owned else observer.observe_unowned()
            if not self._is_continued_by(view):
                if not may_restart:
                    raise Conflict(
                        f"{self._folder} was trimmed up to offset {view.start_offset}, beyond the "
                        f"end of the copy at {self._end_offset}; copy again"
                    )
                self.discard()
            if not self._is_begun:
                self._start_offset = self._end_offset = view.start_offset
                self._is_begun = True
            try:
                self._take(view)
            except (Conflict, FileNotFoundError) as error:
                reason = error
            else:
                return
        raise Conflict(f"{self._folder} changed during {ATTEMPTS_MAX} attempts: {reason}; retry")

    def _is_continued_by(self, view: PartitionView) -> bool:
        """Return whether the log still has what follows the copied segments that it trimmed."""
        first = view.segments[0].info.base_offset if view.segments else view.durable_watermark
        trimmed = [s.end_offset for s in self._segments if s.header.base_offset < first]
        if trimmed:
            return trimmed[-1] == first
        return bool(self._segments) or not self._is_begun or first <= self._end_offset

    def _take(self, view: PartitionView) -> None:
        """Make the copy equal to the view, after segments that the log has trimmed since."""
        salts = {s.info.base_offset: s.header.salt for s in view.segments}
        first = min(salts, default=view.durable_watermark)
        self._keep(
            [
                copied
                for copied in self._segments
                if copied.header.base_offset < first
                or salts.get(copied.header.base_offset) == copied.header.salt
            ]
        )
        known = {copied.header.base_offset: copied for copied in self._segments}
        for segment in view.segments:
            self._copy_segment(segment, known.get(segment.info.base_offset))
        self._end_offset = view.durable_watermark
        self._stable = StablePoint(view.last_stable_offset, view.aborted.count)

    def _keep(self, kept: list[_CopiedSegment]) -> None:
        """Remove all other segments from the copy."""
        for copied in self._segments:
            if copied not in kept:
                self._copier.remove(copied.path)
        self._segments = kept

    def _copy_segment(self, segment: SegmentView, copied: _CopiedSegment | None) -> None:
        """Copy a segment, or the rest of one that has grown."""
        info = segment.info
        if copied is not None and copied.size_bytes == info.size_bytes:
            return
        is_new = copied is None
        if copied is None:
            copied = _CopiedSegment(
                path=segment.path, header=segment.header, end_offset=info.base_offset
            )
        with ExitStack() as undo:
            undo.callback(self._forget, copied)
            with closing(self._copier.source.open(segment.path)) as source:
                _check_salt(source, segment)
                mode: Mode = "create" if is_new else "edit"
                with closing(self._copier.target.open(segment.path, mode)) as target:
                    begin = 0 if is_new else copied.size_bytes
                    copy_bytes(source, target, begin, info.size_bytes, copied.hasher)
                    _check_salt(source, segment)
                    _check_batches(target, segment, copied)
                    target.sync()
            undo.pop_all()
        if is_new:
            self._segments.append(copied)
            self._segments.sort(key=lambda each: each.header.base_offset)
        copied.end_offset, copied.size_bytes = info.end_offset, info.size_bytes
        copied.max_timestamp_ms = info.max_timestamp_ms
        sha256 = copied.hasher.hexdigest()
        self._copier.files[copied.path] = CopiedFile(size_bytes=info.size_bytes, sha256=sha256)

    def _forget(self, copied: _CopiedSegment) -> None:
        """Remove a segment whose copy failed."""
        self._copier.remove(copied.path)
        self._segments = [each for each in self._segments if each is not copied]
        last = self._segments[-1] if self._segments else None
        self._end_offset = self._start_offset if last is None else last.end_offset

    def close(self, rand: Rand, now_ms: int) -> CopiedPartition:
        """Write the watermark file, and an open segment unless the last one may be it."""
        copier, folder = self._copier, self._folder
        last = self._segments[-1] if self._segments else None
        if last is not None and not last.header.is_rewritten and not self._has_index(last):
            tail = SegmentTail(last.header.base_offset, last.size_bytes, last.max_timestamp_ms)
        else:
            tail = self._create_segment(rand, now_ms)
        stored = read_watermarks(copier.source, folder)
        watermarks, _ = WatermarkFile.open(copier.target, folder)
        watermarks.durable(self._end_offset, tail, self._stable)
        exempt_offset = min(stored.exempt_offset, self._start_offset)
        watermarks.trim(self._start_offset, stored.dropped_count, exempt_offset)  # syncs the file
        watermarks.close()
        copier.adopt(f"{folder}/{WATERMARKS_NAME}", f"{folder}/{WATERMARKS_NAME}")
        self._observer.close()
        return CopiedPartition(
            topic=self._topic,
            partition=self._index,
            start_offset=self._start_offset,
            end_offset=self._end_offset,
        )

    def _has_index(self, last: _CopiedSegment) -> bool:
        """Return whether recovery would take the segment for a sealed one."""
        return f"{self._folder}/{side_name(last.header.base_offset, '.index')}" in (
            self._copier.files
        )

    def _create_segment(self, rand: Rand, now_ms: int) -> SegmentTail:
        header = SegmentHeader(
            identity=identity_of(self._topic, self._index),
            salt=rand.randbytes(SALT_BYTES),
            base_offset=self._end_offset,
            created_ms=now_ms,
        )
        segment = LogSegment.create(self._copier.target, self._folder, header, 1)
        segment.close()
        self._copier.adopt(segment.path, segment.path)
        return segment.tail


def _check_salt(file: File, segment: SegmentView) -> None:
    """Raise `Conflict` if the file is not, or no longer, this segment."""
    try:
        salt = decode_segment_header(file.read(0, HEADER_BYTES), segment.path).salt
    except Corrupt:  # it was whole when the view was made: it is being overwritten
        salt = b""
    if salt != segment.header.salt:
        raise Conflict(f"{segment.path} was replaced meanwhile")


def _check_batches(file: File, segment: SegmentView, copied: _CopiedSegment) -> None:
    """Raise `Corrupt` unless the new bytes are the batches that the log has there."""
    position, offset = copied.size_bytes, copied.end_offset
    for batch in walk_batches(file, segment.header, position, segment.info.size_bytes, offset):
        position, offset = batch.end, batch.end_offset
    is_whole = offset == segment.info.end_offset or segment.header.is_rewritten
    if position != segment.info.size_bytes or not is_whole:
        raise Corrupt(
            path=segment.path,
            position=position,
            expected=f"acknowledged batches up to offset {segment.info.end_offset}",
            found=f"other bytes after offset {offset}",
            hint=REPAIR_HINT,
        )
