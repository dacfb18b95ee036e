"""What the log knows a connector by: steps of a source, the subscriber of a sink."""

from __future__ import annotations


def step_prefix(source: str) -> str:
    """Begin of the names of all streams of a source."""
    return f"connect/{source}/"


def step_name(source: str, stream: str) -> str:
    """Name of one stream of a source, in the steps of the log."""
    return f"{step_prefix(source)}{stream}"


def subscriber_name(sink: str) -> str:
    """Name of the subscriber that keeps the progress of a sink."""
    return f"sink.{sink}"
