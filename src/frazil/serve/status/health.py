"""Health of the components that the reader process has, with cause and remedy.

A node is alive while its writer responds, whatever the reader, Spark or a catalog do. It is ready
while no component has failed and it is not stopping. Degraded: acknowledged data is safe and
queryable, and an operator should act.
"""

from __future__ import annotations

from collections.abc import Callable

from frazil.serve.context import NodeContext
from frazil.status import Check, Health

_Finding = tuple[Health, str | None, str | None]
"""State of a component, why, and what to do."""
_OK: _Finding = ("ok", None, None)
_HOT_IS_OFF: _Finding = ("ok", "off (hot.enabled = false)", None)


def reader_checks(context: NodeContext) -> list[Check]:
    """Check every component of the reader, in memory only."""
    findings = [(room, check(context)) for room, check in _CHECKS.items()]
    return [
        Check(component=room, state=state, why=why, next_step=next_step)
        for room, (state, why, next_step) in findings
    ]


def checks_of(context: NodeContext) -> list[Check]:
    """Check every component of the node. Asks the writer: call it in a thread."""
    return [*context.writer_status().checks, *reader_checks(context)]


def _hot(context: NodeContext) -> _Finding:
    tier = context.tier
    if tier is None:
        return _HOT_IS_OFF
    if tier.died is not None:
        remedy = "ingest continues; restart the node, it reads the missing rows from the log"
        return "failed", f"new rows are not visible: {tier.died!r}", remedy
    trouble = tier.trouble or tier.disk_trouble
    if trouble is not None:
        return "degraded", trouble, "see docs/operating.md, Rows are missing"
    if tier.disk_shortage is not None:
        return "degraded", tier.disk_shortage, "see docs/operating.md, Disk full"
    if tier.is_full:
        why = f"{tier.memory_bytes} bytes of rows are unsealed, the limit hot.memory_bytes_max"
        remedy = "check the disk: it is too slow or full for sealing"
        return "degraded", f"{why}; new rows are late", remedy
    return "ok", None if tier.is_complete else "catching up", None


def _lake(context: NodeContext) -> _Finding:
    lake = context.lake
    if lake is None:
        return "ok", "off, or not installed", None
    if lake.died is not None:
        remedy = "ingest and SQL continue; restart the node"
        return "failed", f"appends to the tables stopped: {lake.died!r}", remedy
    if lake.given_up is not None:
        remedy = "if another node appends to these tables, stop one of them, then restart"
        return "degraded", f"automatic appends stopped: {lake.given_up}", remedy
    if lake.trouble is not None:
        remedy = "it is retried; ingest and SQL continue, the log keeps all data"
        return "degraded", lake.trouble, remedy
    return "ok", f"Spark {lake.session.state.replace('_', ' ')}", None


def _query(context: NodeContext) -> _Finding:
    if context.sql is None:
        return _HOT_IS_OFF
    if context.tier is not None and context.tier.died is not None:
        why = "SQL is refused, because recent rows would be missing"
        return "failed", why, "restart the node"
    return _OK


def _tables(context: NodeContext) -> _Finding:
    tables = context.tables
    if tables is None:
        return _HOT_IS_OFF
    if tables.died is not None:
        why = f"new changes of keyed tables are not applied: {tables.died!r}"
        return "failed", why, "writes and telemetry continue; restart the node"
    unwell = [
        (name, trouble) for name in tables.names() if (trouble := tables.trouble(name)) is not None
    ]
    if not unwell:
        return _OK
    name, why = unwell[0]
    more = f"; {len(unwell) - 1} more" if len(unwell) > 1 else ""
    remedy = "it is retried; see docs/tables.md, When a table fails"
    return "degraded", f"table {name}: {why}{more}", remedy


def _connectors(context: NodeContext) -> _Finding:
    """Connectors that fail: what is in the log is safe, and nothing else waits for them."""
    found = () if context.connectors is None else context.connectors.statuses()
    failing = [each for each in found if each.word in ("backing off", "failed")]
    if not failing:
        return _OK
    first = failing[0]
    more = f", and {len(failing) - 1} more" if len(failing) > 1 else ""
    spec = first.spec
    remedy = f"see SHOW {spec.role.upper()}S and docs/connectors.md"
    if first.word == "failed":
        remedy = f"repair it, then RESUME {spec.role.upper()} {spec.name}"
    return "degraded", f"{spec.role} {spec.name} is {first.word}: {first.why}{more}", remedy


_CHECKS: dict[str, Callable[[NodeContext], _Finding]] = {
    "hot": _hot,
    "tables": _tables,
    "lake": _lake,
    "query": _query,
    "connectors": _connectors,
}
