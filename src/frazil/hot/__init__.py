"""hot: recent telemetry as Arrow rows, visible a moment after it is durable in the log.

    tier.py            HotTier: follows the log, shows rows, seals files, evicts
    worker.py          HotWorker: the two threads that keep it going
    config.py          HotConfig
    piece.py           Piece, Filter: what queries get
    shown.py           which pieces there are, of all tables at one moment
    partition.py       one partition of the log as rows: open, frozen, sealed
    decoding.py        from batches of the log to requests
    open_segment.py    rows in memory, small batches joined as they come
    sealer.py          frozen rows become files, the log is told, old files go
    shelf.py           the files of one partition, side by side
    recovery.py        which of the files count after a crash
    sealed.py          a file and its pieces
    arrow_segment.py   ArrowSegment: one immutable file, checked and mapped
    segment_layout.py  its header, footer and trailer
    ipc_stream.py      Arrow IPC with every buffer at a multiple of 64
    dictionaries.py    one vocabulary per stream
    drift.py           rows of earlier releases in the schema of today
    facts.py           bounds of columns, names of services
    bloom.py           filters over trace and span ids

On disk, below the data folder, all of it derived from the log:

    hot/<table>/<partition>/00000000000000000000.arrow    a segment, named by its first offset
                           /00000000000000000000.arrow.damaged   one that was set aside
                           /start.ckpt                    what lies below was evicted

The reading thread owns what is open, the sealing thread what is on disk. Queries hold pieces,
which are immutable and outlive their files.
"""

from frazil.hot.arrow_segment import ArrowSegment, ArrowStream, open_segment
from frazil.hot.bloom import Bloom
from frazil.hot.config import HotConfig
from frazil.hot.facts import ColumnFacts
from frazil.hot.piece import Filter, Piece
from frazil.hot.shown import Snapshot
from frazil.hot.tier import HotTier
from frazil.hot.worker import HotWorker

__all__ = [
    "ArrowSegment",
    "ArrowStream",
    "Bloom",
    "ColumnFacts",
    "Filter",
    "HotConfig",
    "HotTier",
    "HotWorker",
    "Piece",
    "Snapshot",
    "open_segment",
]
