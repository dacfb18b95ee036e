"""serve/doors/loki: Loki's HTTP API, for Grafana and logcli.

door.py        LOKI: the paths, and errors as its clients expect them
params.py      times, steps and limits as clients write them
answers.py     streams, vectors and matrices as JSON
rows.py        runs a query of a request in a thread
queries.py     query, query_range, format_query
discovery.py   labels, series, volumes, fields, patterns
node_facts.py  what the node says of itself: version and limits
tail.py        new lines over a WebSocket
"""
