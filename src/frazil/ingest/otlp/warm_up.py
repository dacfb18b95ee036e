"""Compile the loops over requests, or load them from disk, so that no request waits."""

from __future__ import annotations

from frazil.ingest.otlp.limits import RecordLimits
from frazil.ingest.otlp.scan import prune
from frazil.model import Signal
from frazil.settings import LimitsConfig


def warm() -> None:
    """Compile what every node uses. Redaction and the series limit compile theirs when set up."""
    prune(Signal.LOGS, b"")
    RecordLimits(LimitsConfig(when_exceeded="reject")).enforce(Signal.LOGS, b"", 0)
    RecordLimits(LimitsConfig()).enforce(Signal.LOGS, b"", 0)
