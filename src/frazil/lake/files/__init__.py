"""lake/files: Parquet data files.

writer.py          write sorted, durable data files
sort.py            combine rows, split them by day and sort them
parquet_schema.py  columns, field ids and encodings
column_stats.py    column metrics for manifests
parquet_damage.py  errors about damaged files
sink.py            buffered writes for Arrow
object_store.py    FileStore: a local folder or a bucket
"""
