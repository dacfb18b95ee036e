"""Compile every loop over requests, also those that only some settings use."""

from __future__ import annotations

from frazil.ingest import series
from frazil.ingest.otlp.redact import Redactor, compile_rules
from frazil.ingest.otlp.warm_up import warm


def warm_all() -> None:
    """Compile ahead what any settings may need. A node compiles only what its settings use."""
    warm()
    series.warm()
    Redactor(compile_rules(()), b"")
