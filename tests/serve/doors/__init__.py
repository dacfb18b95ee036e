"""Doors: other tools' protocols.

trace_clients.py     what clients of Tempo and Jaeger send
test_trace_doors.py  each of it is answered; parameters, errors, formats
"""
