"""Errors of PromQL queries that parse but cannot be answered."""

from __future__ import annotations

from frazil.errors import Rejected


class FailedQuery(Rejected):
    """The data of a query breaks a rule of PromQL, such as two series with the same labels."""


class UnsupportedQuery(Rejected):
    """The query uses something experimental that Frazil does not evaluate."""


SAME_LABELS = "vector cannot contain metrics with the same labelset"
