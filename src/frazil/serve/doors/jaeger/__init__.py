"""serve/doors/jaeger: the query API of Jaeger, versions 1 and 3, below /jaeger.

door.py     its endpoints; errors as Jaeger's clients expect them
params.py   what a search asks for, as conditions of TraceQL
model.py    traces in Jaeger's JSON
v1.py       services, operations, traces, dependencies
v3.py       the same as OTLP, and summaries of traces
"""
