"""Compile all loops over requests, or load them from disk, so that no request waits."""

from __future__ import annotations

from frazil.ingest.otlp.limits import RecordLimits
from frazil.ingest.otlp.redact import CompiledRules, Redactor
from frazil.ingest.otlp.scan import prune
from frazil.model import Signal
from frazil.settings import LimitsConfig

WARM_BODY = b"\x0a\x09\x0a\x07\x0a\x05\x0a\x01a\x12\x00"
"""A request with an attribute `a` of a resource."""


def warm() -> None:
    """Compile what every node uses, and what limits and key rules use."""
    prune(Signal.LOGS, b"")
    RecordLimits(LimitsConfig(when_exceeded="reject")).enforce(Signal.LOGS, b"", 0)
    RecordLimits(LimitsConfig()).enforce(Signal.LOGS, b"", 0)
    rules = CompiledRules(keys=((b"a", "mask"),), patterns=(), joined=None)
    Redactor(rules, b"").redact(Signal.LOGS, WARM_BODY)
