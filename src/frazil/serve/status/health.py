"""Health of each component, with cause and remedy. The content of `/livez` and `/readyz`.

A node is alive while its event loop responds, whatever Spark or a catalog does. It is ready while
no component has failed and it is not stopping. Degraded: acknowledged data is safe and queryable,
and an operator should act.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Annotated, Literal

import msgspec

from frazil.model import doc
from frazil.serve.context import NodeContext

Health = Literal["ok", "degraded", "failed"]


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """State of one component."""

    room: str
    state: Health
    why: Annotated[str | None, doc("What is wrong, or worth knowing.")] = None
    next_step: Annotated[str | None, doc("What to do; null if nothing.")] = None


_Finding = tuple[Health, str | None, str | None]
"""State of a component, why, and what to do."""
_OK: _Finding = ("ok", None, None)
_HOT_IS_OFF: _Finding = ("ok", "off (hot.enabled = false)", None)


def checks_of(context: NodeContext) -> list[Check]:
    """Check every component, in memory only. Call it on the event loop."""
    findings = [(room, check(context)) for room, check in _CHECKS.items()]
    return [
        Check(room=room, state=state, why=why, next_step=next_step)
        for room, (state, why, next_step) in findings
    ]


def is_ready(checks: Iterable[Check]) -> bool:
    """Return whether the node should receive requests."""
    return all(check.state != "failed" for check in checks)


def readiness_text(checks: list[Check]) -> str:
    """One line per component in the format of Kubernetes, then the verdict."""
    verdict = "readyz check passed" if is_ready(checks) else "readyz check failed"
    return "".join(f"{_line(check)}\n" for check in checks) + f"{verdict}\n"


def _line(check: Check) -> str:
    sign = "[-]" if check.state == "failed" else "[+]"
    text = "; ".join(part for part in (check.why, check.next_step) if part is not None)
    text = " ".join(text.split())  # messages of Spark have line breaks
    return f"{sign}{check.room} {check.state}{f': {text}' if text else ''}"


def _node(context: NodeContext) -> _Finding:
    state = context.uptime.state
    return _OK if state == "running" else ("failed", f"this node is {state}", None)


def _log(context: NodeContext) -> _Finding:
    failure, budget = context.log.writer.failure, context.log.budget
    if failure is not None:
        return "failed", f"writing stopped: {failure}", "check the disk, then restart the node"
    used = f"{budget.used_bytes} of {budget.hard_bytes_max} bytes"
    if budget.is_full:
        remedy = f"find the slowest reader ({_slowest(context)}), free disk space, or raise "
        return "failed", f"the log is full: {used}", f"{remedy}log.disk_bytes_max"
    if budget.is_tight:
        remedy = f"find the slowest reader: {_slowest(context)}"
        return "degraded", f"the log is almost full: {used}", remedy
    return _OK


def _slowest(context: NodeContext) -> str:
    """Describe the reader with the largest lag."""
    lags = {subscriber.name: subscriber.lag() for subscriber in context.log.subscribers()}
    if context.lake is not None:
        lags["the lake"] = sum(
            partition.view.durable_watermark
            - (context.log.lake_watermark(topic.name, partition.index) or 0)
            for topic in context.log.topics()
            if topic.config.awaits_lake
            for partition in topic.partitions
        )
    elif any(topic.config.awaits_lake for topic in context.log.topics()):
        return "telemetry is kept until a lake has it, and there is no lake"
    if not lags:
        return "it has no readers"
    name = max(lags, key=lambda name: lags[name])
    return f"{name} lags by {lags[name]} offsets"


def _ingest(context: NodeContext) -> _Finding:
    admission = context.otlp.admission()
    why = admission.why_closed
    if why is None:
        return _OK
    if admission.is_draining:
        return "failed", why, None
    remedy = "it recovers by itself; otherwise see the log of the node"
    return "degraded", f"requests are asked to retry: {why}", remedy


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


_CHECKS: dict[str, Callable[[NodeContext], _Finding]] = {
    "node": _node,
    "log": _log,
    "ingest": _ingest,
    "hot": _hot,
    "lake": _lake,
    "query": _query,
}
