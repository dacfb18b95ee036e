"""Real OpenTelemetry clients, and the node and the network that they are tried with.

    node.py      Node: the real process on a data folder; stored: what its log holds afterwards
    flaky.py     Flaky: a proxy that loses answers and refuses requests, exactly where told
    slow_disk.py the node, on a disk that takes its time
    programs.py  how each client program is started; installs and builds what it needs, once
    send.py      the Python SDK
    js/          the JavaScript SDK
    go/          the Go SDK

The three programs send the same telemetry, which `send.py` describes. Where to they learn from the
variables of the environment that OpenTelemetry defines.
"""
