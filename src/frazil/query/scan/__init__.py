"""query/scan: the rows of a table, from both tiers.

tiers.py            Tiers: the rows of a table in hot tier and lake
as_of_rows.py       the rows of an AS OF table
keyed_tables.py     KeyedPins: keyed tables, one moment of each for one query
keyed_rows.py       KeyedScan: the rows of a keyed table, and its changes
table_rows.py       TableRows: the rows of one table for one query
parquet_scan.py     ParquetScan: data files, read by DataFusion
external.py         external tables, as they are found and fetched by others
audit_table.py      the table of statements
copy_history.py     the `copy_history` table
filled.py           promoted columns of older rows, from their maps
pipe_history.py     the `pipe_history` table
snapshots_table.py  the `snapshots` table
"""
