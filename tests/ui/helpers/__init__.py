"""Helpers of the UI tests: telemetry to send, a proxy with a path, and a watched page."""
