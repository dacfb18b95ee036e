"""log/format: record batches.

batch.py        Kafka record batches: encoded, parsed, checked
compression.py  gzip, snappy, lz4, zstd, with a cap on what comes out
record.py       Record: one of the records in a batch
"""
