"""ingest/otlp: the OTLP wire format.

decompress.py   decompression with a cap on the output
json.py         OTLP JSON to OTLP protobuf
gauge_request.py  gauges, as a request
log_request.py  log records whose values are Python's own, as a request
scan.py         the scanner: validates a request and counts its records
scan_tables.py  the scanner's tables, made from protobuf descriptors
scan_walk.py    the scanner's compiled loops
limits.py       limits on attributes and log bodies: cut or reject
limit_walk.py   their compiled loops
redact.py       redaction rules: hash, mask or drop by key or by pattern
redact_walk.py  their compiled loops
series_walk.py  compiled loops that find the metric series of a request
warm_up.py      compiles all of these loops before the first request
messages.py     the protobuf message of each signal
"""
