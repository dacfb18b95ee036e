"""ConnectorSummary: one source or sink, as status and API show it."""

from __future__ import annotations

from typing import Annotated

import msgspec

from frazil.connectors.runtime import Connectors, ConnectorStatus
from frazil.model import doc


class ConnectorSummary(msgspec.Struct, frozen=True, kw_only=True):
    """One source or sink."""

    connector: str
    role: Annotated[str, doc("`source` or `sink`.")]
    type: str
    topic: Annotated[str, doc("Of a source: where it writes, or a pattern of topics.")]
    state: Annotated[str, doc("`starting`, `running`, `paused`, `backing off` or `failed`.")]
    why: Annotated[str | None, doc("Why it does not run, or what it waits for.")]
    is_failing: Annotated[bool, doc("True while it backs off, or has failed.")]
    pid: int | None
    records: Annotated[int, doc("Durable or delivered since the node has started.")]
    size_bytes: Annotated[int, doc("Of these records, as the log stores them.")]
    dead_letters: Annotated[int, doc("Records of a sink that the other side has refused.")]
    streams: Annotated[int | None, doc("Of a source: parts with a position of their own.")]
    lag_offsets: Annotated[int | None, doc("Of a sink: durable, and not delivered yet.")]
    idle_s: Annotated[float | None, doc("Since the last records; null if there were none.")]
    starts: Annotated[int, doc("Processes started since the node has started.")]
    failures: Annotated[int, doc("Processes in a row that ended before they moved a record.")]
    last_error: str | None
    next_start_in_s: Annotated[float | None, doc("While it backs off.")]


def connector_summaries(connectors: Connectors | None, now_ms: int) -> list[ConnectorSummary]:
    """Return all connectors of a node, by role and name."""
    return [] if connectors is None else [summary(each, now_ms) for each in connectors.statuses()]


def summary(status: ConnectorStatus, now_ms: int) -> ConnectorSummary:
    is_source = status.spec.role == "source"
    next_ms = status.next_start_ms
    return ConnectorSummary(
        connector=status.spec.name,
        role=status.spec.role,
        type=status.spec.type,
        topic=status.spec.topic,
        state=status.word,
        why=status.why or None,
        is_failing=status.word in ("backing off", "failed"),
        pid=status.pid,
        records=status.records,
        size_bytes=status.bytes,
        dead_letters=status.refused,
        streams=status.streams if is_source else None,
        lag_offsets=None if is_source else status.lag_offsets,
        idle_s=None if status.last_ms is None else max(0, now_ms - status.last_ms) / 1000,
        starts=status.starts,
        failures=status.failures,
        last_error=status.last_error or None,
        next_start_in_s=None if next_ms is None else max(0, next_ms - now_ms) / 1000,
    )
