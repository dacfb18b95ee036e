"""Alerts and recording rules."""
