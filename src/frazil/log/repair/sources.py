"""Positions of sources, after the records that they were stored with are lost."""

from __future__ import annotations

from collections.abc import Iterable

from frazil.errors import Corrupt
from frazil.log.checkpoint import PartitionFiles, load_sources, save_sources
from frazil.model import OffsetRange


def is_damaged(files: PartitionFiles) -> bool:
    """Return whether the checkpoint of sources cannot be read."""
    try:
        load_sources(files, 0, is_whole=False)
    except Corrupt:
        return True
    return False


def lose(files: PartitionFiles, lost: Iterable[OffsetRange]) -> bool:
    """Note which sources lost their last records: none of them goes on as if they were stored.
    Returns whether there are any."""
    positions, end_offset = load_sources(files, 0, is_whole=False)
    if not positions.lose(lost):
        return False
    save_sources(files, positions, end_offset)
    return True
