"""serve/doors: other tools' protocols, on the port of the API.

endpoint.py  Door, DoorEndpoint, DoorRequest: paths below a prefix, with errors as its clients
             expect them
all.py       the doors of a node

tempo/           Grafana Tempo
jaeger/          Jaeger
trace_params.py  parameters of both
"""
