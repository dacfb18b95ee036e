"""lake/loaded: tables that are loaded from files.

load_table.py   LoadTable: the table of a load, planned but not changed
load_writer.py  LoadWriter: rows as Parquet data files, in a task
load_reader.py  rows of data files that were not committed yet
load_commit.py  data files, ledger, new columns and new tables in one commit
clone_table.py  a table with the rows of a snapshot of another, without copying them
alter_table.py  how files are written: sorted, with bloom filters
ledger.py       the load ledger: which files a table was loaded from
log_ledger.py   LogLedger: the same of a table that is filled from the log
"""
