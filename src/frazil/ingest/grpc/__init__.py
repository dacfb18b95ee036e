"""ingest/grpc: OTLP/gRPC.

compression.py  compressed messages
deadlines.py    messages that must come in time
errors.py       how every call is refused
exports.py      who may call what, and what becomes of an export
reflection.py   health and reflection
server.py       OTLP/gRPC
"""
