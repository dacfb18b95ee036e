"""lake/read: rows by offset, from tables and log combined.

followers.py        Followers: the named readers of a data folder
follower.py         Follower: the rows of a table, old and new, in log order
start_offset.py     where a new reader starts
reader_progress.py  durable progress of named readers
log_tail.py         rows that are still in the log
table_reader.py     TableReader: committed rows of a table in log order
offset_files.py     which data files hold which offsets
offset_windows.py   offset ranges with their data files
window_reader.py    sized, split, read and sorted windows
prefetch.py         windows read ahead
offset_range.py     rows of any offset range, for Spark's data source
lake_range.py       the part of such a range that is in the lake only
topic_tables.py     TopicTables: other topics as tables for queries
topic_tails.py      their rows that are in the log only
"""
