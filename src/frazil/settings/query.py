"""QueryConfig: limits of one query, and how many run at a time."""

from __future__ import annotations

from typing import Annotated

import msgspec

from frazil.model import MiB, doc, require_at_least


class QueryConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of the query engine."""

    timeout_ms: Annotated[int, doc("Timeout of a query, from the call to the last row read.")] = (
        30_000
    )
    memory_bytes_max: Annotated[
        int,
        doc("Memory for groups, sorts and joins. Its process may briefly grow by twice this."),
    ] = 512 * MiB
    rows_max: Annotated[int, doc("Rows of a result.")] = 1_000_000
    text_bytes_max: Annotated[int, doc("Length of the SQL text of a query.")] = 256 * 1024
    concurrency_max: Annotated[
        int, doc("Queries at the same time. Each counts until its result is read or closed.")
    ] = 8
    queue_timeout_ms: Annotated[
        int, doc("How long a query waits for its turn before it is rejected.")
    ] = 5_000
    apart_bytes_max: Annotated[
        int,
        doc("Rows that are copied for a query, because no file has them: mostly of AS OF tables."),
    ] = 1024 * MiB
    workers_memory_bytes_max: Annotated[
        int, doc("Memory of all running queries together. Above it, the largest one is ended.")
    ] = 2048 * MiB
    topic_bytes_max: Annotated[
        int,
        doc(
            "Rows of a topic other than telemetry that are only in the log: each query reads all "
            "of them. Set it above what arrives between two lake commits."
        ),
    ] = 256 * MiB
    apart_idle_ms: Annotated[
        int, doc("How long an idle worker process waits for the next query.")
    ] = 60_000

    def __post_init__(self) -> None:
        require_at_least(1, "query", self)
