"""Tempo's and Jaeger's own types decode what the doors answer.

clients.py  python -m tests.live.tempo.clients: every request of the clients, decoded by Go
go/         the program that decodes; unknown fields are errors
"""
