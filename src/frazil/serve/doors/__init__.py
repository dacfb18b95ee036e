"""serve/doors: other tools' protocols, on the port of the API.

endpoint.py      Door, DoorEndpoint, DoorRequest: paths below a prefix, with errors as its clients
                 expect them
all.py           the doors of a node
mcp.py           the Model Context Protocol, for agents
trace_params.py  parameters of Tempo and Jaeger

prometheus/      Prometheus' HTTP API
registry/        schema registry, as Confluent's
loki/            Loki: LogQL, live lines
tempo/           Grafana Tempo: TraceQL
jaeger/          Jaeger
"""
