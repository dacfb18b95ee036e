"""Preloaded by the fork server: imports modules and loads compiled code once."""

from __future__ import annotations

from frazil.tables import warm
from tests.torture.keyed_lake import breaks, mutants

warm()

__all__ = ["breaks", "mutants"]
