"""The port of Jaeger's remote storage, by grpcio with messages of our own making.

opened.py         a port over an open node, and a client
protocol.py       jaeger.storage.v2 as protobuf's own compiler would have it
test_storage.py   answers, limits, attacks, access
"""
