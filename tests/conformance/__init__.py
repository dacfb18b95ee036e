"""What is answered to good and bad input, case by case, and what the log holds afterwards.

    cases.py               requests in protobuf, sent over gRPC and over HTTP
    json_cases.py          requests in JSON
    http_cases.py          what only HTTP can do: headers, encodings, methods, paths
    clients.py             one request over either transport, and its answer
    test_conformance.py    runs the tables

Rows are those of the fault catalogue: D1 to D18.
"""
