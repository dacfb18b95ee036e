"""serve/doors: other tools' protocols, on the port of the API.

endpoint.py  Door, DoorEndpoint, DoorRequest: paths below a prefix, with errors as its clients
             expect them
mcp.py       the Model Context Protocol, for agents
all.py       the doors of a node
prometheus/  Prometheus' HTTP API
loki/        Loki: LogQL, live lines
"""
