"""RemovedSegments: what outlives a removed segment: its file as a spare, its digests."""

from __future__ import annotations

from frazil.disk import Budget
from frazil.log.checkpoint import PartitionFiles
from frazil.log.segment import side_name
from frazil.log.view import SegmentView

SPARES_MAX = 4
"""Trimmed files kept for reuse; at 256 MB/s one maintenance round per second finds that many."""


class RemovedSegments:
    """Owned by the writer thread."""

    def __init__(self, files: PartitionFiles, budget: Budget, digest_files: dict[str, int]) -> None:
        self._disk = files.disk
        self._folder = files.folder
        self._config = files.config
        self._budget = budget
        self._spares: list[tuple[str, int]] = []
        self._digest_files = digest_files
        """Since when their segments are removed."""

    @property
    def is_empty(self) -> bool:
        return not self._spares and not self._digest_files

    @property
    def spare_bytes(self) -> int:
        return sum(size_bytes for _, size_bytes in self._spares)

    def remove(self, segment: SegmentView, now_ms: int) -> int:
        """Remove a segment's files. Its digests stay until their window has passed.

        Returns the bytes freed: 0 if the file is kept as a spare.
        """
        disk, folder = self._disk, self._folder
        base, size_bytes = segment.info.base_offset, segment.info.size_bytes
        names = disk.list(folder)
        if side_name(base, ".index") in names:
            disk.unlink(f"{folder}/{side_name(base, '.index')}")
        if side_name(base, ".digests") in names:
            self._digest_files[f"{folder}/{side_name(base, '.digests')}"] = now_ms
        is_useful = 2 * size_bytes >= self._config.segment_bytes_max
        if is_useful and len(self._spares) < SPARES_MAX and not self._budget.should_release:
            spare = f"{folder}/{side_name(base, '.spare')}"
            disk.rename(segment.path, spare)
            self._spares.append((spare, size_bytes))
            return 0
        disk.unlink(segment.path)
        return size_bytes

    def take_spare(self) -> str | None:
        """Return a file to be reused, if there is one. It no longer counts."""
        path, size_bytes = self._spares.pop() if self._spares else (None, 0)
        self._budget.take(-size_bytes)
        return path

    def drop_spares(self) -> None:
        """Remove spare files."""
        while self._spares:
            path, size_bytes = self._spares.pop()
            self._disk.unlink(path)
            self._budget.take(-size_bytes)

    def expire_digests(self, now_ms: int) -> None:
        """Remove the files of digests outside the window."""
        for path, since_ms in list(self._digest_files.items()):
            if since_ms + self._config.digest_window_ms < now_ms:
                self._disk.unlink(path)
                del self._digest_files[path]
