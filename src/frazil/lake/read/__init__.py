"""lake/read: rows by offset, from tables and log as one.

follower.py         Follower: rows from long ago up to now, and on as they come
followers.py        Followers: each name once at a time
lake_range.py       those that are in the lake only
log_tail.py         rows of the live end of the log
offset_files.py     which files hold which offsets
offset_range.py     rows by their offsets, from the log or from the lake
offset_windows.py   offsets, and the files of their rows
prefetch.py         rows read before they are asked for
reader_progress.py  how far named readers have come
start_offset.py     where a new one begins
table_reader.py     TableReader: rows of a table in the order of the log
topic_tables.py     TopicTables: other topics as tables, for queries
topic_tails.py      their rows that are in the log only
window_reader.py    these rows, weighed, read, sorted
"""
