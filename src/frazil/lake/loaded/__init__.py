"""lake/loaded: tables that are loaded from files.

load_table.py   LoadTable: the table of a load, planned but not changed
load_writer.py  LoadWriter: rows as Parquet data files, in a task
load_reader.py  rows of data files that were not committed yet
load_commit.py  data files, ledger, new columns and new tables in one commit
ledger.py       the load ledger: which files a table was loaded from
"""
