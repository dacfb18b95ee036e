"""hot/segment: segments of the hot tier, open in memory and sealed in files.

piece.py           Piece, Filter: what queries get
shared_memory.py   SharedMemory: rows that other processes can map
open_segment.py    OpenSegment: rows in memory, small batches merged as they come
segments.py        SealedSegments: the files of one partition
sealed.py          SealedSegment: a file and its pieces
arrow_segment.py   ArrowSegment: one immutable file, checked and mapped
layout.py          header, footer and trailer of the file
ipc.py             Arrow IPC streams in memory
dictionaries.py    one dictionary per column and stream
column_stats.py    bounds of columns, service names
bloom.py           Bloom: filters over trace and span ids
schema_upgrade.py  rows of earlier releases in the current schema
"""
