"""Postgres change capture, against a real server. server.py starts one; harness.py runs a source
over a real log, without the runtime of connectors."""
