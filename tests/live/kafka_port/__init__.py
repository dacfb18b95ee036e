"""Kafka clients that others wrote, against a node. docs/kafka.md has the list."""
