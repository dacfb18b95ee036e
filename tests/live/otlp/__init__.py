"""Tests of the OTLP ports of a real node.

test_clients.py       OpenTelemetry SDKs in three languages
http2.py              raw HTTP/2 frames
test_grpc_attacks.py  hostile clients on OTLP/gRPC
test_http_attacks.py  hostile clients on OTLP/HTTP
"""
