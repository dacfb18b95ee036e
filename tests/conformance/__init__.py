"""Valid and invalid requests, case by case: the response, and what is stored.

    cases.py               requests in protobuf, sent over gRPC and over HTTP
    json_cases.py          requests in JSON
    http_cases.py          what only HTTP has: headers, encodings, methods, paths
    clients.py             sends one request over either transport
    test_conformance.py    runs the tables
    test_pressure.py       duplicates and overload

Row names are those of the fault catalogue: D1 to D18.
"""
