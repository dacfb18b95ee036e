"""query/scan: the rows of a table, from both tiers.

tiers.py            Tiers: the rows of a table in hot tier and lake
as_of_rows.py       the rows of an AS OF table
table_rows.py       TableRows: the rows of one table for one query
parquet_scan.py     ParquetScan: data files, read by DataFusion
audit_table.py      the table of statements
copy_history.py     the `copy_history` table
pipe_history.py     the `pipe_history` table
snapshots_table.py  the `snapshots` table
"""
