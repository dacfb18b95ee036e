"""Deliberate bugs in the log. The torture tests must detect every one, or they prove nothing.

Each mutant patches a piece of the log with a mistake known from real systems, inside `mutated`
only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any
from unittest import mock

from google_crc32c import value as crc32c

from frazil.disk import checkpoint as ckpt
from frazil.disk import frames
from frazil.log import (
    checkpoint,
    compaction,
    partition,
    progress,
    reader,
    recovery,
    retention,
    segment,
    subscribers,
    watermarks,
    writer,
)
from frazil.log.dedup import producers
from frazil.log.dedup.producers import Producers
from tests.sim.disk import SimDisk, SimFile

Patches = list[Any]


def _ack_before_sync() -> Patches:
    """Acknowledge before the data is durable."""
    return [mock.patch.object(partition.Partition, "sync", lambda self: None)]


def _no_directory_sync() -> Patches:
    """Never sync directories, so new names are not durable."""
    return [mock.patch.object(SimDisk, "sync_directory", lambda self, path: None)]


def _retried_sync() -> Patches:
    """Sync again after a failed sync, and trust the second result."""

    def sync(self: partition.Partition) -> None:
        try:
            self._active.file.sync()
        except OSError:
            self._active.file.sync()

    return [mock.patch.object(partition.Partition, "sync", sync)]


def _cut_at_corruption() -> Patches:
    """Treat damage in the middle of the log as a torn tail, and cut it."""
    original = recovery.recover

    def recover(files: Any, now_ms: int, *, floor: int) -> Any:
        return original(files, now_ms, floor=0)

    def open_watermarks(disk: Any, folder: str) -> tuple[Any, Any]:
        opened, stored = original_open(disk, folder)
        return opened, replace(stored, is_known=True, durable_watermark=0)

    original_open = watermarks.WatermarkFile.open
    return [
        mock.patch.object(recovery, "acknowledged_after", lambda *_: 0),
        mock.patch.object(partition, "recover", recover),
        mock.patch.object(watermarks.WatermarkFile, "open", open_watermarks),
        mock.patch.object(checkpoint, "STATE", _EndlessState()),
    ]


class _EndlessState:
    """A checkpoint layout that loses the durable end of the log."""

    size = checkpoint.STATE.size

    def pack(self, start: int, end: int) -> bytes:
        return checkpoint_state.pack(start, end)

    def unpack_from(self, body: bytes) -> tuple[int, int]:
        return checkpoint_state.unpack_from(body)[0], 0


checkpoint_state = checkpoint.STATE


def _forgotten_producers() -> Patches:
    """Forget all producers at restart."""
    return [
        mock.patch.object(recovery._Replay, "take", lambda self, batch, header, is_active: None),
        mock.patch.object(Producers, "encode", lambda self: b"\0\0\0\0"),
    ]


def _forgotten_digests() -> Patches:
    """Forget all digests at restart."""
    return [
        mock.patch.object(recovery._Replay, "load_digests", lambda self, sealed: None),
        mock.patch.object(recovery, "FLAG_DIGEST", 0),
    ]


def _window_of_four() -> Patches:
    """Remember one batch per producer fewer than documented."""
    return [mock.patch.object(producers, "REMEMBERED", 4)]


def _reversed_group() -> Patches:
    """Write the batches of a group in reverse order."""
    original = writer.Writer._take
    return [mock.patch.object(writer.Writer, "_take", lambda self: original(self)[::-1])]


def _dropped_one() -> Patches:
    """Skip every 17th batch."""
    return [_every(partition.Partition, "_stage_bytes", 17, lambda original, args: None)]


def _doubled_one() -> Patches:
    """Write every 13th batch twice."""

    def twice(original: Callable[..., Any], args: tuple[Any, ...]) -> Any:
        original(*args)
        return original(*args)

    return [_every(partition.Partition, "stage", 13, twice)]


def _header_unchecked() -> Patches:
    """Do not verify the checksums of frame headers."""

    def crc(data: bytes) -> int:
        return 0

    pack = frames.CHECK.pack

    class Check:
        size = 4

        def pack(self, _: int) -> bytes:
            return pack(0)

    return [mock.patch.object(frames, "crc32c", crc), mock.patch.object(frames, "CHECK", Check())]


def _payload_unchecked() -> Patches:
    """Do not verify the checksums of record batches."""
    original = segment._checked

    def checked(frame: Any) -> Any:
        with mock.patch.object(segment, "crc32c", _Equal):
            return original(frame)

    return [mock.patch.object(segment, "_checked", checked)]


class _Equal:
    def __init__(self, _: bytes) -> None: ...

    def __ne__(self, other: object) -> bool:
        return False


def _refused_but_kept() -> Patches:
    """Leave refused batches in the file."""

    def truncate(self: segment.LogSegment, size_bytes: int) -> None:
        self.size_bytes = self.file.size()

    return [mock.patch.object(segment.LogSegment, "truncate", truncate)]


def _unsynced_refusal() -> Patches:
    """Truncate refused batches without a sync."""

    def truncate(self: segment.LogSegment, size_bytes: int) -> None:
        self.file.truncate(size_bytes)
        self.size_bytes = size_bytes

    return [mock.patch.object(segment.LogSegment, "truncate", truncate)]


def _early_view() -> Patches:
    """Make records visible to readers before they are durable."""
    original = partition.Partition.write

    def write(self: partition.Partition) -> None:
        original(self)
        self._durable_watermark = self._next_offset
        self.view = self._current_view()

    return [mock.patch.object(partition.Partition, "write", write)]


def _trim_without_word() -> Patches:
    """Remove segments without recording the new start offset first."""
    return [mock.patch.object(watermarks.WatermarkFile, "trim", lambda self, start, dropped: None)]


def _trim_too_far() -> Patches:
    """Remove segments that subscribers or the lake still need."""

    def released(view: Any, *_: object) -> int:
        return int(view.durable_watermark)

    return [mock.patch.object(retention, "released_offset", released)]


def _progress_before_effect() -> Patches:
    """Mark a batch as finished when it is claimed."""
    original = subscribers.Subscriber._claim_of

    def claim_of(self: subscribers.Subscriber, follower: Any, batch: Any) -> Any:
        claim = original(self, follower, batch)
        follower.progress.finish(batch.base_offset, batch.end_offset)
        self._is_changed = True
        return claim

    return [mock.patch.object(subscribers.Subscriber, "_claim_of", claim_of)]


def _watermark_over_gaps() -> Patches:
    """Move a subscriber's watermark past unfinished batches."""

    def finish(self: progress.Progress, begin: int, end: int) -> None:
        self.watermark = max(self.watermark, end)

    return [mock.patch.object(progress.Progress, "finish", finish)]


def _unsettled_recovery() -> Patches:
    """Serve recovered records without making them durable first."""
    return [mock.patch.object(SimFile, "settle", lambda self: None)]


def _reader_skips() -> Patches:
    """Start reading one segment too late."""
    original = reader._segment_of

    def segment_of(view: Any, offset: int) -> Any:
        found = original(view, offset)
        return original(view, offset + 1) or found

    return [mock.patch.object(reader, "_segment_of", segment_of)]


def _half_checkpoint() -> Patches:
    """Write checkpoints in place instead of by rename."""

    def write(disk: Any, path: str, kind: bytes, version: int, body: bytes) -> None:
        whole = ckpt.HEADER.pack(ckpt.MAGIC, kind, version, 0, len(body)) + body
        whole += ckpt.TRAILER.pack(crc32c(whole))
        folder, _, name = path.rpartition("/")
        file = disk.open(path, "edit" if name in disk.list(folder) else "create")
        file.truncate(0)
        file.append([whole])
        file.sync()
        file.close()
        disk.sync_directory(folder)

    return [
        mock.patch.object(checkpoint, "write_checkpoint", write),
        mock.patch.object(subscribers, "write_checkpoint", write),
    ]


def _same_salt() -> Patches:
    """Use the same salt for every file, so that old frames in a reused file look valid."""
    original = checkpoint.PartitionFiles.new_header

    def new_header(self: checkpoint.PartitionFiles, base_offset: int, now_ms: int) -> Any:
        return replace(original(self, base_offset, now_ms), salt=bytes(8))

    return [mock.patch.object(checkpoint.PartitionFiles, "new_header", new_header)]


def _all_of_a_key_gone() -> Patches:
    """Compact away the latest record of each key, too."""
    original = compaction._latest_offsets

    def later_offsets(
        files: Any, segments: list[Any], aborted: Any
    ) -> tuple[dict[bytes, int], list[Any]]:
        latest, covered = original(files, segments, aborted)
        return {key: offset + 1 for key, offset in latest.items()}, covered

    return [mock.patch.object(compaction, "_latest_offsets", later_offsets)]


def _merge_removes_first() -> Patches:
    """Remove merged segments before the segment that replaces them has its name."""
    original = partition.Partition.replace_sealed

    def replace_sealed(self: Any, old: Any, new: Any, scratch: str) -> None:
        for part in old[1:]:
            self.files.disk.unlink(part.path)
        self.files.disk.sync_directory(self.files.folder)
        with mock.patch.object(partition.Partition, "_remove", lambda self, part: 0):
            original(self, old, new, scratch)

    return [mock.patch.object(partition.Partition, "replace_sealed", replace_sealed)]


def _every(owner: Any, name: str, period: int, wrong: Callable[..., Any]) -> Any:
    """Replace every `period`-th call of a method with `wrong`."""
    original = getattr(owner, name)
    calls = 0

    def sometimes(*args: Any) -> Any:
        nonlocal calls
        calls += 1
        return original(*args) if calls % period else wrong(original, args)

    return mock.patch.object(owner, name, sometimes)


MUTANTS: dict[str, tuple[str, Callable[[], Patches]]] = {
    "ack_before_sync": ("sim", _ack_before_sync),
    "no_directory_sync": ("sim", _no_directory_sync),
    "retried_sync": ("sim", _retried_sync),
    "cut_at_corruption": ("rot", _cut_at_corruption),
    "forgotten_producers": ("sim", _forgotten_producers),
    "forgotten_digests": ("sim", _forgotten_digests),
    "window_of_four": ("sim", _window_of_four),
    "reversed_group": ("sim", _reversed_group),
    "dropped_one": ("sim", _dropped_one),
    "doubled_one": ("sim", _doubled_one),
    "header_unchecked": ("flip", _header_unchecked),
    "payload_unchecked": ("rot", _payload_unchecked),
    "refused_but_kept": ("sim", _refused_but_kept),
    "unsynced_refusal": ("sim", _unsynced_refusal),
    "early_view": ("sim", _early_view),
    "trim_without_word": ("sim", _trim_without_word),
    "trim_too_far": ("sim", _trim_too_far),
    "progress_before_effect": ("sim", _progress_before_effect),
    "watermark_over_gaps": ("sim", _watermark_over_gaps),
    "unsettled_recovery": ("sim", _unsettled_recovery),
    "reader_skips": ("sim", _reader_skips),
    "half_checkpoint": ("sim", _half_checkpoint),
    "same_salt": ("sim", _same_salt),
    "all_of_a_key_gone": ("sim", _all_of_a_key_gone),
    "merge_removes_first": ("sim", _merge_removes_first),
}
"""Name -> (the kind that must detect it, its patches)."""


@contextmanager
def mutated(name: str) -> Iterator[None]:
    """Apply the named bug to the log for the duration of the block."""
    patches = MUTANTS[name][1]()
    for patch in patches:
        patch.start()
    try:
        yield
    finally:
        for patch in reversed(patches):
            patch.stop()
