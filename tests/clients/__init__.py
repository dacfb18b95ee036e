"""Real OpenTelemetry clients, with the node and the network they are tested with.

    node.py      Node: the real process on a data folder; stored: what its log holds afterwards
    flaky.py     Flaky: a proxy that drops chosen responses and refuses chosen requests
    slow_disk.py the node on a slow disk
    programs.py  installs, builds and starts the client programs
    send.py      the Python SDK
    js/          the JavaScript SDK
    go/          the Go SDK

The three programs send the same telemetry, which `send.py` describes. The endpoint is in
OpenTelemetry's environment variables.
"""
