"""hot: recent telemetry as Arrow rows, visible a moment after it is durable in the log.

    config.py          HotConfig
    partition.py       one partition of the log as rows: open, frozen, sealed
    recovery.py        which of the files count after a crash
    request_reader.py  from batches of the log to requests
    sealer.py          frozen rows become files, the log is told, old files go
    tier.py            HotTier: follows the log, shows rows, seals files, evicts
    visible.py         which pieces there are, of all tables at one moment
    worker.py          HotWorker: the two threads that keep it going

    segment/           segments: open in memory, sealed in files

On disk, below the data folder, all of it derived from the log:

    hot/<table>/<partition>/00000000000000000000.arrow    a segment, named by its first offset
                           /00000000000000000000.arrow.damaged   one that was set aside
                           /start.ckpt                    what lies below was evicted

The reading thread owns what is open, the sealing thread what is on disk. Queries hold pieces,
which are immutable and outlive their files.
"""

from frazil.hot.config import HotConfig
from frazil.hot.segment.arrow_segment import ArrowSegment, ArrowStream, open_segment
from frazil.hot.segment.bloom import Bloom
from frazil.hot.segment.column_stats import ColumnStats
from frazil.hot.segment.piece import Filter, Piece
from frazil.hot.tier import HotTier
from frazil.hot.visible import Snapshot
from frazil.hot.worker import HotWorker

__all__ = [
    "ArrowSegment",
    "ArrowStream",
    "Bloom",
    "ColumnStats",
    "Filter",
    "HotConfig",
    "HotTier",
    "HotWorker",
    "Piece",
    "Snapshot",
    "open_segment",
]
