"""Kafka clients that others wrote, against a node."""
