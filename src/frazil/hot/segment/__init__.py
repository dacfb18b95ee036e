"""hot/segment: segments: open in memory, sealed in files.

aligned_ipc.py     Arrow IPC with every buffer at a multiple of 64
arrow_segment.py   ArrowSegment: one immutable file, checked and mapped
bloom.py           filters over trace and span ids
column_stats.py    bounds of columns, names of services
dictionaries.py    one vocabulary per stream
layout.py          its header, footer and trailer
open_segment.py    rows in memory, small batches joined as they come
piece.py           Piece, Filter: what queries get
schema_upgrade.py  rows of earlier releases in the schema of today
sealed.py          a file and its pieces
segments.py        the files of one partition, side by side
"""
