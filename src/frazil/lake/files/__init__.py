"""lake/files: Parquet data files.

column_stats.py    what a manifest says of them
object_store.py    where files are written to: a folder or a bucket
parquet_schema.py  their columns
sink.py            where Arrow writes to
sort.py            rows by day, and in order
writer.py          data files
"""
