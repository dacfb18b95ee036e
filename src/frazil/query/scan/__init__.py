"""query/scan: the rows of a table, from all tiers.

as_of_rows.py       the rows of another time
parquet_scan.py     files of the lake, for the engine
table_rows.py       TableRows: the rows of one table for one query
snapshots_table.py  the table that lists snapshots
tiers.py            the rows of a table at one moment, of both tiers
"""
