"""Loaded once by the server that lives are forked from: compiled code, and everything imported."""

from __future__ import annotations

from frazil.lake.tables import tables
from frazil.model import arrow
from tests.torture.lake import breaks, mutants

arrow.warm()

__all__ = ["breaks", "mutants", "tables"]
