"""load/external: files of stages that queries read as tables.

tables.py       ExternalTables: lists, prunes and fetches files for queries
columns.py      the columns of an external table: inferred once, then kept
partitions.py   values in the names of folders: `year=2026/`
statistics.py   row count and bounds of a file, from its Parquet footer
file_cache.py   FileCache: fetched files, converted to Parquet, in the data folder
statements.py   CREATE EXTERNAL TABLE and DROP EXTERNAL TABLE
"""
