"""A real Jaeger whose traces are in a node: it reads them by its remote storage over gRPC.

server.py   Jaeger, from its Go module
compare.py  python -m tests.live.jaeger.compare: its HTTP API answers as ours does
"""
