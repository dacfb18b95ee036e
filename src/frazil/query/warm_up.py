"""Compile what queries call, ahead of the first one."""

from __future__ import annotations


def warm() -> None:
    """Compile the functions that queries call, or load them from the cache on disk."""
    # Imported here: a process that only starts queries does without DataFusion.
    import pyarrow as pa

    from frazil.query.counts.group_count import count_distinct
    from frazil.query.functions.register import warm_functions

    warm_functions()
    numbers = pa.array([1, 2])
    count_distinct([pa.record_batch({"texts": pa.array(["a", "é"]), "numbers": numbers})])
