"""Postgres change capture beside Debezium: `python -m tests.live.postgres.debezium`."""
