"""Opening a shelf: which of the files in its folder count.

The log is the truth. A file that is damaged, belongs elsewhere, or says more than the log holds
is not shown. Where the log still has its offsets, it is made anew; where not, the loss is told,
and the file is set aside for people to look at.
"""

from __future__ import annotations

import errno
import logging
import re

from frazil.disk import make_directories, read_checkpoint
from frazil.errors import Corrupt
from frazil.hot.segment.arrow_segment import open_segment
from frazil.hot.segment.layout import damaged
from frazil.hot.segment.sealed import Sealed, SegmentFolder, sealed_of
from frazil.hot.segment.segments import START, START_KIND, START_NAME, START_VERSION, SealedSegments
from frazil.metrics import Counter

logger = logging.getLogger(__name__)

SEGMENT_NAME = re.compile(r"(\d{20})\.arrow")
UNREADABLE = frozenset({errno.EIO, errno.ENODATA, errno.EUCLEAN, errno.EBADMSG})
"""What the kernel says of bytes that the disk no longer gives. Anything else (no memory, too many
open files) says nothing about the file."""

SET_ASIDE = Counter("frazil.hot.set_aside.segments", "Sealed segments that could not be used.")


def open_shelf(
    place: SegmentFolder, log_begin: int, log_end: int, *, is_foreign: bool
) -> SealedSegments:
    """Check and map every segment of a partition of which the log holds `log_begin` up to
    `log_end`. When the log does not know us, the files were made from another one: none counts.
    """
    make_directories(place.disk, place.folder)
    begins = _begins(place)
    if is_foreign:
        for begin in begins:
            _set_aside(place, begin, "it was made from another log", keep=True)
        begins = []
    sealed = [one for begin in begins if (one := _open(place, begin, log_begin, log_end))]
    start = None if is_foreign else _load_start(place)
    if start is None:
        start = min([log_begin, *(one.begin_offset for one in sealed)])
    start = min(start, log_end)
    shelf = SealedSegments(place, start, _disjoint(place, sealed, start, log_begin))
    shelf.save_start()
    return shelf


def _begins(place: SegmentFolder) -> list[int]:
    """The first offsets of the segments there are. What was half written goes."""
    names = place.disk.list(place.folder)
    for name in names:
        if name.endswith(".tmp"):
            place.disk.unlink(f"{place.folder}/{name}")
    return [int(found[1]) for name in names if (found := SEGMENT_NAME.fullmatch(name))]


def _open(place: SegmentFolder, begin: int, log_begin: int, log_end: int) -> Sealed | None:
    """One segment; None when it does not count, and then its name is free."""
    path = place.path(begin)
    try:
        segment = open_segment(place.disk, path)
        found = (segment.header.identity, segment.begin_offset)
        if found != (place.identity, begin):
            raise damaged(path, 0, f"offset {begin} of {place.topic}", "a file of another place")
        sealed = sealed_of(place, segment)
    except Corrupt as error:
        _set_aside(place, begin, str(error), keep=begin < log_begin)
        return None
    except OSError as error:
        if error.errno not in UNREADABLE:
            raise
        _set_aside(place, begin, str(error), keep=begin < log_begin)
        return None
    if sealed.end_offset > log_end:
        _set_aside(place, begin, f"the log ends at {log_end}", keep=True)
        return None
    return sealed


def _disjoint(
    place: SegmentFolder, sealed: list[Sealed], start: int, log_begin: int
) -> list[Sealed]:
    """Segments without those that a crash has left behind: evicted ones, and ones that a merge
    has covered."""
    kept: list[Sealed] = []
    reach = start
    for one in sealed:
        if one.end_offset <= reach:
            place.disk.unlink(one.segment.path)
        elif kept and one.begin_offset < reach:
            keep = one.begin_offset < log_begin
            _set_aside(place, one.begin_offset, f"the one before ends at {reach}", keep=keep)
        else:
            kept.append(one)
            reach = one.end_offset
    return kept


def _set_aside(place: SegmentFolder, begin: int, reason: str, *, keep: bool) -> None:
    """Free the name of a file. It is kept under another one if it may be all that is left."""
    path = place.path(begin)
    SET_ASIDE.add(topic=place.topic)
    if keep:
        logger.error("hot segment set aside", extra={"path": path, "reason": reason})
        place.disk.rename(path, f"{path}.damaged")
    else:
        logger.warning("hot segment made anew", extra={"path": path, "reason": reason})
        place.disk.unlink(path)


def _load_start(place: SegmentFolder) -> int | None:
    path = f"{place.folder}/{START_NAME}"
    try:
        body = read_checkpoint(place.disk, path, START_KIND, START_VERSION, "")
    except Corrupt as error:
        logger.warning("start of the hot tier unknown", extra={"reason": str(error)})
        return None
    if body is None or len(body) != START.size:
        return None
    start: int = START.unpack(body)[0]
    return start
