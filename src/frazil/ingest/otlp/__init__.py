"""ingest/otlp: the OTLP wire format.

decompress.py   decompression with a cap on the output
json.py         OTLP JSON to OTLP protobuf
scan.py         the scanner: validates a request and counts its records
scan_tables.py  the scanner's tables, made from protobuf descriptors
scan_walk.py    the scanner's compiled loops
messages.py     the protobuf message of each signal
"""
