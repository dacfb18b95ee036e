"""ingest/otlp: the OTLP wire: scanning, JSON, decompression.

decompress.py   decompression, with a cap on what comes out
json.py         OTLP JSON to OTLP protobuf
messages.py     the protobuf message of each signal
scan.py         the scanner: are these bytes a request, and what is in it?
scan_tables.py  what the scanner knows of OTLP's messages
scan_walk.py    the scanner's compiled part
"""
