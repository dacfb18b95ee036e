"""Preloaded by the fork server: imports modules and loads compiled code once."""

from __future__ import annotations

from frazil.lake.tables import tables
from frazil.model import arrow
from tests.torture.lake import breaks, mutants

arrow.warm()

__all__ = ["breaks", "mutants", "tables"]
