"""Opens the sealed segments of a partition, and decides which files are valid.

The log is the source of truth. A file is ignored if it is damaged, belongs to another partition,
or has offsets beyond the end of the log. If the log still has its offsets, the file is rebuilt;
otherwise the loss is logged and the file is set aside for inspection.
"""

from __future__ import annotations

import errno
import logging
import re

from frazil.disk import make_directories, read_checkpoint
from frazil.errors import Corrupt
from frazil.hot.segment.arrow_segment import open_segment
from frazil.hot.segment.layout import damaged
from frazil.hot.segment.sealed import SealedSegment, SegmentFolder, sealed_of
from frazil.hot.segment.segments import START, START_KIND, START_NAME, START_VERSION, SealedSegments
from frazil.metrics import Counter

logger = logging.getLogger(__name__)

SEGMENT_NAME = re.compile(r"(\d{20})\.arrow")
UNREADABLE = frozenset({errno.EIO, errno.ENODATA, errno.EUCLEAN, errno.EBADMSG})
"""Errors that mean the disk lost the file's bytes. Others, such as out of memory or too many open
files, say nothing about the file."""

SET_ASIDE = Counter("frazil.hot.set_aside.segments", "Sealed segments that could not be used.")


def open_segments(
    folder: SegmentFolder, log_begin: int, log_end: int, *, is_foreign: bool
) -> SealedSegments:
    """Check and map every segment of a partition whose log has the offsets [log_begin, log_end).

    `is_foreign`: the log does not know our subscriber, so the files come from another log, and all
    are set aside.
    """
    make_directories(folder.disk, folder.name)
    begins = _list_begins(folder)
    if is_foreign:
        for begin in begins:
            _set_aside(folder, begin, "it was built from another log", keep=True)
        begins = []
    opened = (_open(folder, begin, log_begin, log_end) for begin in begins)
    sealed = [segment for segment in opened if segment is not None]
    start = None if is_foreign else _load_start(folder)
    if start is None:
        start = min([log_begin, *(segment.begin_offset for segment in sealed)])
    start = min(start, log_end)
    segments = SealedSegments(folder, start, _disjoint(folder, sealed, start, log_begin))
    segments.save_start()
    return segments


def _list_begins(folder: SegmentFolder) -> list[int]:
    """Return the first offsets of all segments. Deletes temporary files."""
    names = folder.disk.list(folder.name)
    for name in names:
        if name.endswith(".tmp"):
            folder.disk.unlink(f"{folder.name}/{name}")
    return [int(match[1]) for name in names if (match := SEGMENT_NAME.fullmatch(name))]


def _open(folder: SegmentFolder, begin: int, log_begin: int, log_end: int) -> SealedSegment | None:
    """Open one segment. Returns None if it is not valid; its file name is free then."""
    path = folder.path(begin)
    try:
        file = open_segment(folder.disk, path)
        if (file.header.identity, file.begin_offset) != (folder.identity, begin):
            raise damaged(path, 0, f"offset {begin} of {folder.topic}", "a file of another folder")
        sealed = sealed_of(folder, file)
    except Corrupt as error:
        _set_aside(folder, begin, str(error), keep=begin < log_begin)
        return None
    except OSError as error:
        if error.errno not in UNREADABLE:
            raise
        _set_aside(folder, begin, str(error), keep=begin < log_begin)
        return None
    if sealed.end_offset > log_end:
        _set_aside(folder, begin, f"the log ends at {log_end}", keep=True)
        return None
    return sealed


def _disjoint(
    folder: SegmentFolder, sealed: list[SealedSegment], start: int, log_begin: int
) -> list[SealedSegment]:
    """Drop segments that a crash left behind: evicted ones, and ones covered by a merge."""
    valid: list[SealedSegment] = []
    end = start
    for segment in sealed:
        if segment.end_offset <= end:
            folder.disk.unlink(segment.file.path)
        elif valid and segment.begin_offset < end:
            keep = segment.begin_offset < log_begin
            _set_aside(folder, segment.begin_offset, f"the one before ends at {end}", keep=keep)
        else:
            valid.append(segment)
            end = segment.end_offset
    return valid


def _set_aside(folder: SegmentFolder, begin: int, reason: str, *, keep: bool) -> None:
    """Free the name of a file. With `keep` it is renamed, as it may be the only copy."""
    path = folder.path(begin)
    SET_ASIDE.add(topic=folder.topic)
    if keep:
        logger.error("hot segment set aside", extra={"path": path, "reason": reason})
        folder.disk.rename(path, f"{path}.damaged")
    else:
        logger.warning("hot segment rebuilt from the log", extra={"path": path, "reason": reason})
        folder.disk.unlink(path)


def _load_start(folder: SegmentFolder) -> int | None:
    path = f"{folder.name}/{START_NAME}"
    try:
        body = read_checkpoint(folder.disk, path, START_KIND, START_VERSION, "")
    except Corrupt as error:
        logger.warning("start of the hot tier unknown", extra={"reason": str(error)})
        return None
    if body is None or len(body) != START.size:
        return None
    start: int = START.unpack(body)[0]
    return start
