"""PartitionSources: the positions of sources in a partition, in memory and on disk."""

from __future__ import annotations

from frazil.log.checkpoint import SOURCES_NAME, PartitionFiles, save_sources
from frazil.log.dedup.source_positions import SourcePositions


class PartitionSources:
    """Owned by the writer thread."""

    def __init__(self, files: PartitionFiles, positions: SourcePositions) -> None:
        self.positions = positions
        self._files = files
        self._has_file = SOURCES_NAME in files.disk.list(files.folder)

    def forget(self, source: str, end_offset: int) -> bool:
        """Forget a source that has ended, durably. Returns whether it was known."""
        is_known = self.positions.forget(source)
        if is_known:
            self._write(end_offset)
        return is_known

    def forget_all(self, prefix: str, end_offset: int) -> int:
        """Forget the sources whose name begins so, durably. Returns how many there were."""
        names = [name for name, _ in self.positions.items() if name.startswith(prefix)]
        for name in names:
            self.positions.forget(name)
        if names:
            self._write(end_offset)
        return len(names)

    def save(self, end_offset: int) -> None:
        """Save a checkpoint, if there is or was a source."""
        if len(self.positions) or self._has_file:
            self._write(end_offset)

    def _write(self, end_offset: int) -> None:
        save_sources(self._files, self.positions, end_offset)
        self._has_file = True
