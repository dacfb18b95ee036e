"""serve/jaeger_storage: the port on which a Jaeger reads its traces from this node.

port.py      JaegerPort: opens and closes the server
calls.py     JaegerCalls: who may call, limits, errors; which method goes where
answers.py   what the methods answer: services, operations, traces, dependencies
requests.py  what their requests ask for
messages.py  the messages of jaeger.storage.v2, as protobuf classes

It is read-only: Jaeger writes spans over OTLP, which has a port of its own. Calls are owned by the
event loop; answers are made in threads, with queries that are cancelled when the client leaves.
"""
