"""Names of services and their operations, from spans."""

from __future__ import annotations

from collections.abc import Sequence

from frazil.query.search.filters import Ask, if_set, text, texts, where

NAMES_MAX = 10_000


def service_names(ask: Ask) -> list[str]:
    """List the services that have sent spans, by name."""
    names: list[str] = ask(
        "SELECT service_name FROM spans GROUP BY service_name ORDER BY service_name "
        f"LIMIT {NAMES_MAX}"
    )["service_name"].to_pylist()
    return names


def operation_names(ask: Ask, service: str, *, kind: str | None = None) -> list[tuple[str, str]]:
    """List the operations of a service with their kinds, by name."""
    conditions = [f"service_name = {text(service)}", *if_set("kind = {}", kind, text)]
    rows = ask(
        f"SELECT name, kind FROM spans {where(conditions)} GROUP BY name, kind "
        f"ORDER BY name, kind LIMIT {NAMES_MAX}"
    )
    return list(zip(rows["name"].to_pylist(), rows["kind"].to_pylist(), strict=True))


def orphan_counts(ask: Ask, trace_ids: Sequence[str]) -> dict[str, int]:
    """Count the spans of traces whose parent is missing; traces without any are omitted."""
    if not trace_ids:
        return {}
    rows = ask(
        "SELECT child.trace_id AS trace_id, count(*) AS n FROM spans AS child "
        "LEFT JOIN spans AS parent ON child.trace_id = parent.trace_id "
        "AND child.parent_span_id = parent.span_id "
        f"WHERE child.trace_id IN ({texts(trace_ids)}) AND child.parent_span_id IS NOT NULL "
        "AND parent.span_id IS NULL GROUP BY child.trace_id"
    )
    return dict(zip(rows["trace_id"].to_pylist(), rows["n"].to_pylist(), strict=True))
