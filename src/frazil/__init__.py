"""Frazil: telemetry and event streams, durable at once, frozen into open tables."""

__version__ = "0.1.0"
