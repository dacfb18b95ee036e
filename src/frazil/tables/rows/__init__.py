"""tables/rows: row versions and their deaths.

row_segment.py   RowSegment: row versions, in memory or in a mapped file
deaths.py        Deaths: which row versions died, at which offset, in the order of the log
segment_file.py  a row segment as a file
mapped_pages.py  MappedPages: bounds the memory of mapped files
"""
