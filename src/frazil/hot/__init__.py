"""hot: the hot tier: recent telemetry as Arrow rows, visible soon after it is durable in the log.

    log ──read, decode──> open ──freeze──> frozen ──seal──> sealed
                          grows            waits for disk   a mapped file

Behind the log, rows are hidden until they are sealed: they need not be copied for queries first.

    tier.py            HotTier: follows the log, publishes rows, seals and evicts segments
    partition.py       HotPartition: one partition of the log as rows
    request_reader.py  batches of the log as requests for the decoder
    visible.py         VisibleSegments: the rows that queries see, replaced as a whole
    sealer.py          Sealer: writes frozen segments, saves progress, merges and evicts
    recovery.py        which segment files are valid after a start
    worker.py          HotWorker: the two threads of the tier

    segment/           segments: open in memory, sealed in files

On disk, below the data folder, all of it derived from the log:

    hot/<table>/<partition>/00000000000000000000.arrow    a segment, named by its first offset
                           /00000000000000000000.arrow.damaged   one that was set aside
                           /start.ckpt                    first offset that is not evicted

The reading thread owns open segments, the sealing thread files. Queries hold pieces, which are
immutable and outlive their files.
"""

from frazil.hot.segment.arrow_segment import ArrowSegment, ArrowStream, open_segment
from frazil.hot.segment.bloom import Bloom, warm
from frazil.hot.segment.column_stats import ColumnStats
from frazil.hot.segment.piece import Filter, Piece, SealedLocation, SharedLocation
from frazil.hot.segment.schema_upgrade import conformed, filled, unfilled_columns
from frazil.hot.segment.shared_memory import Extent, SharedMemory, read_extent
from frazil.hot.tier import HotTier
from frazil.hot.visible import VisiblePieces
from frazil.hot.worker import HotWorker

__all__ = [
    "ArrowSegment",
    "ArrowStream",
    "Bloom",
    "ColumnStats",
    "Extent",
    "Filter",
    "HotTier",
    "HotWorker",
    "Piece",
    "SealedLocation",
    "SharedLocation",
    "SharedMemory",
    "VisiblePieces",
    "conformed",
    "filled",
    "open_segment",
    "read_extent",
    "unfilled_columns",
    "warm",
]
