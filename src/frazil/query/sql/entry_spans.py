"""Entry spans: the requests of a service, as a condition on one row of `spans`."""

from __future__ import annotations

VIEW = "entry_spans"
"""View over `spans` that has only these rows."""

_REMOTE_PARENT = 0x300
"""Bits of `Span.flags`: the sender knows where the parent is, and it is in another process."""


def is_entry(prefix: str = "") -> str:
    """SQL condition of entry spans; `prefix` is a table alias with a dot, or empty.

    A span is an entry span if it is of kind SERVER or CONSUMER, if it has no parent, or if its
    sender flags the parent as remote. No other row is needed: not the parent, which may lie outside
    of the time range, or arrive later than its children. docs/decisions/0022 has the reasons.
    """
    return (
        f"({prefix}kind IN ('SERVER', 'CONSUMER') OR {prefix}parent_span_id IS NULL "
        f"OR ({prefix}flags & {_REMOTE_PARENT}) = {_REMOTE_PARENT})"
    )
