"""log/format: Kafka record batches.

record.py       Record: encode and decode one record of a batch
compression.py  gzip, snappy, lz4, zstd, with a cap on the decompressed size
batch.py        BatchHeader: encode, parse and check batches
"""
