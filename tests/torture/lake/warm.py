"""Loaded once by the server that lives are forked from: compiled code, and everything imported."""

from __future__ import annotations

from frazil.lake.tables import tables
from frazil.model import columns
from tests.torture.lake import breaks, mutants

columns.warm()

__all__ = ["breaks", "mutants", "tables"]
