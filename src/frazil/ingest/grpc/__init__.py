"""ingest/grpc: OTLP/gRPC, on grpcio's server.

server.py       OtlpGrpc: the port
listening.py    a server of gRPC with its limits, also for other ports
exports.py      GrpcExports: finds the handler of a call, and serves exports
deadlines.py    MessageReader: reads messages within their time limit
compression.py  decompresses messages
errors.py       how calls are refused
reflection.py   health and reflection
"""
