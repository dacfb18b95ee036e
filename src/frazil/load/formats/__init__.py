"""load/formats: rows with strict types out of bytes, in bounded memory.

reader.py          one file of any format: its schema, or its rows
blocks.py          Block, RowError: what readers yield
compression.py     decompress a stream
lines.py           chunks of whole lines
ndjson.py          NDJSON, by Arrow where that is exact
json_values.py     JSON values, by Python: the reference
json_documents.py  JSON arrays and documents over several lines
csv_rows.py        CSV
columnar.py        Parquet and ORC
avro_rows.py       Avro
syslog.py          syslog: RFC 5424, RFC 3164, and as files have it
times.py           times in text
avro_zstd.py       Avro with blocks of Zstandard
text_cast.py       strict casts from text
typed_cast.py      strict casts between types
type_merge.py      merges types upward
"""
