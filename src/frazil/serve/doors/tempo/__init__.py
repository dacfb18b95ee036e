"""serve/doors/tempo: the API of Grafana Tempo, below /tempo.

door.py     its endpoints; errors as text
traces.py   one trace, as protobuf and as JSON
search.py   traces by TraceQL, or by tags
metrics.py  metrics of spans
tags.py     names of attributes, and their values
"""
