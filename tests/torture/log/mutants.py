"""Faults of our own making. The torturer must find every one, or it proves nothing.

Each mutant replaces a piece of the log by one that is wrong in a way builders have been wrong
before. They exist only here, and only while `mutated` is in force.
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
    """Acknowledges what the disk may still lose."""
    return [mock.patch.object(partition.Partition, "sync", lambda self: None)]


def _no_directory_sync() -> Patches:
    """Trusts a new name before the folder is durable."""
    return [mock.patch.object(SimDisk, "sync_directory", lambda self, path: None)]


def _retried_sync() -> Patches:
    """Syncs again after a failure, and believes the second answer."""

    def sync(self: partition.Partition) -> None:
        try:
            self._active.file.sync()
        except OSError:
            self._active.file.sync()

    return [mock.patch.object(partition.Partition, "sync", sync)]


def _cut_at_corruption() -> Patches:
    """Takes damage in the middle for a torn tail, and cuts it away."""
    original = recovery.recover

    def recover(files: Any, now_ms: int, *, floor: int, may_create: bool) -> Any:
        return original(files, now_ms, floor=0, may_create=may_create)

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
    """A checkpoint layout that forgets how far the log was durable."""

    size = checkpoint.STATE.size

    def pack(self, start: int, end: int) -> bytes:
        return checkpoint_state.pack(start, end)

    def unpack_from(self, body: bytes) -> tuple[int, int]:
        return checkpoint_state.unpack_from(body)[0], 0


checkpoint_state = checkpoint.STATE


def _forgotten_producers() -> Patches:
    """Knows no producer after a restart, and takes whatever comes."""
    original = Producers.find_duplicate

    def find_duplicate(self: Producers, header: Any) -> Any:
        return original(self, header) if header.producer_id in self._known else None

    return [
        mock.patch.object(recovery._Replay, "take", lambda self, batch, header, is_active: None),
        mock.patch.object(Producers, "encode", lambda self: b"\0\0\0\0"),
        mock.patch.object(Producers, "find_duplicate", find_duplicate),
    ]


def _forgotten_digests() -> Patches:
    """Knows no digest after a restart."""
    return [
        mock.patch.object(recovery._Replay, "load_digests", lambda self, sealed: None),
        mock.patch.object(recovery, "FLAG_DIGEST", 0),
    ]


def _window_of_four() -> Patches:
    """Remembers one batch fewer than it promises."""
    return [mock.patch.object(producers, "REMEMBERED", 4)]


def _reversed_group() -> Patches:
    """Writes a group in the wrong order."""
    original = writer.Writer._take
    return [mock.patch.object(writer.Writer, "_take", lambda self: original(self)[::-1])]


def _dropped_one() -> Patches:
    """Leaves a batch out now and then."""
    return [_every(partition.Partition, "_stage_bytes", 17, lambda original, args: None)]


def _doubled_one() -> Patches:
    """Writes a batch twice now and then."""

    def twice(original: Callable[..., Any], args: tuple[Any, ...]) -> Any:
        original(*args)
        return original(*args)

    return [_every(partition.Partition, "stage", 13, twice)]


def _header_unchecked() -> Patches:
    """Believes every frame header."""

    def crc(data: bytes) -> int:
        return 0

    pack = frames.CHECK.pack

    class Check:
        size = 4

        def pack(self, _: int) -> bytes:
            return pack(0)

    return [mock.patch.object(frames, "crc32c", crc), mock.patch.object(frames, "CHECK", Check())]


def _payload_unchecked() -> Patches:
    """Believes every record batch."""
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
    """Leaves in the file what it has refused."""

    def truncate(self: segment.LogSegment, size_bytes: int) -> None:
        self.size_bytes = self.file.size()

    return [mock.patch.object(segment.LogSegment, "truncate", truncate)]


def _unsynced_refusal() -> Patches:
    """Takes back what it refuses, but not durably."""

    def truncate(self: segment.LogSegment, size_bytes: int) -> None:
        self.file.truncate(size_bytes)
        self.size_bytes = size_bytes

    return [mock.patch.object(segment.LogSegment, "truncate", truncate)]


def _early_view() -> Patches:
    """Shows readers what is not durable yet."""
    original = partition.Partition.write

    def write(self: partition.Partition) -> None:
        original(self)
        self._durable_watermark = self._next_offset
        self.view = self._current_view()

    return [mock.patch.object(partition.Partition, "write", write)]


def _trim_without_word() -> Patches:
    """Removes segments without saying so first."""
    return [mock.patch.object(watermarks.WatermarkFile, "trim", lambda self, start, dropped: None)]


def _trim_too_far() -> Patches:
    """Removes what subscribers and the lake still need."""

    def released(view: Any, *_: object) -> int:
        return int(view.durable_watermark)

    return [mock.patch.object(retention, "released_offset", released)]


def _progress_before_effect() -> Patches:
    """Counts a batch as finished when it is handed out."""
    original = subscribers.Subscriber._claim_of

    def claim_of(self: subscribers.Subscriber, follower: Any, batch: Any) -> Any:
        claim = original(self, follower, batch)
        follower.progress.finish(batch.base_offset, batch.end_offset)
        self._is_changed = True
        return claim

    return [mock.patch.object(subscribers.Subscriber, "_claim_of", claim_of)]


def _watermark_over_gaps() -> Patches:
    """Moves a subscriber's watermark over what it has not finished."""

    def finish(self: progress.Progress, begin: int, end: int) -> None:
        self.watermark = max(self.watermark, end)

    return [mock.patch.object(progress.Progress, "finish", finish)]


def _unsettled_recovery() -> Patches:
    """Serves after a crash what the disk may still lose."""
    return [mock.patch.object(SimFile, "settle", lambda self: None)]


def _reader_skips() -> Patches:
    """Begins reading one segment too late."""
    original = reader._segment_of

    def segment_of(view: Any, offset: int) -> Any:
        found = original(view, offset)
        return original(view, offset + 1) or found

    return [mock.patch.object(reader, "_segment_of", segment_of)]


def _half_checkpoint() -> Patches:
    """Writes small state in place."""

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
    """Gives every file the same salt, so that old frames in a file used again pass for new ones."""
    original = checkpoint.PartitionFiles.new_header

    def new_header(self: checkpoint.PartitionFiles, base_offset: int, now_ms: int) -> Any:
        return replace(original(self, base_offset, now_ms), salt=bytes(8))

    return [mock.patch.object(checkpoint.PartitionFiles, "new_header", new_header)]


def _all_of_a_key_gone() -> Patches:
    """Compaction takes the latest record of a key for replaced, too."""
    original = compaction._latest_offsets

    def later_offsets(place: Any, segments: list[Any]) -> tuple[dict[bytes, int], list[Any]]:
        latest, covered = original(place, segments)
        return {key: offset + 1 for key, offset in latest.items()}, covered

    return [mock.patch.object(compaction, "_latest_offsets", later_offsets)]


def _merge_removes_first() -> Patches:
    """Compaction removes the neighbours before the segment that holds them has its name."""
    original = partition.Partition.replace_sealed

    def replace_sealed(self: Any, old: Any, new: Any, scratch: str) -> None:
        for part in old[1:]:
            self.place.disk.unlink(part.path)
        self.place.disk.sync_directory(self.place.folder)
        with mock.patch.object(partition.Partition, "_remove", lambda self, part: 0):
            original(self, old, new, scratch)

    return [mock.patch.object(partition.Partition, "replace_sealed", replace_sealed)]


def _every(owner: Any, name: str, period: int, wrong: Callable[..., Any]) -> Any:
    """Do it wrong every `period`-th time."""
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
"""Name -> (the kind that must find it, how to make it)."""


@contextmanager
def mutated(name: str) -> Iterator[None]:
    """While this is open, the log is wrong in the named way."""
    patches = MUTANTS[name][1]()
    for patch in patches:
        patch.start()
    try:
        yield
    finally:
        for patch in reversed(patches):
            patch.stop()
