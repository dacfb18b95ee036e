"""Health of each component, with cause and remedy. The content of `/livez` and `/readyz`.

A node is alive while its event loop responds, whatever Spark or a catalog does. It is ready while
no component has failed and it is not stopping. Degraded: acknowledged data is safe and queryable,
and an operator should act.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Literal

import msgspec

from frazil.model import doc
from frazil.serve.context import NodeContext
from frazil.serve.uptime import Uptime

Health = Literal["ok", "degraded", "failed"]


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """State of one component."""

    room: str
    state: Health
    why: Annotated[str | None, doc("What is wrong, or worth knowing.")] = None
    next_step: Annotated[str | None, doc("What to do; null if nothing.")] = None


def checks_of(context: NodeContext) -> list[Check]:
    """Check every component, in memory only. Call it on the event loop."""
    return [
        _node(context.uptime),
        _log(context),
        _ingest(context),
        _hot(context),
        _lake(context),
        _query(context),
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


def _node(uptime: Uptime) -> Check:
    if uptime.state == "running":
        return Check(room="node", state="ok")
    return Check(room="node", state="failed", why=f"this node is {uptime.state}")


def _log(context: NodeContext) -> Check:
    log = context.log
    if log.writer.failure is not None:
        return Check(
            room="log",
            state="failed",
            why=f"writing stopped: {log.writer.failure}",
            next_step="check the disk, then restart the node",
        )
    if log.budget.is_full:
        return Check(
            room="log",
            state="failed",
            why=f"the log is full: {log.budget.used_bytes} of {log.budget.hard_bytes_max} bytes",
            next_step=f"find the slowest reader ({_slowest(context)}), free disk space, or "
            "raise log.disk_bytes_max",
        )
    if log.budget.is_tight:
        return Check(
            room="log",
            state="degraded",
            why=f"the log is almost full: {log.budget.used_bytes} of {log.budget.hard_bytes_max} "
            "bytes",
            next_step=f"find the slowest reader: {_slowest(context)}",
        )
    return Check(room="log", state="ok")


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


def _ingest(context: NodeContext) -> Check:
    admission = context.otlp.admission()
    why = admission.why_closed
    if why is None:
        return Check(room="ingest", state="ok")
    if admission.is_draining:
        return Check(room="ingest", state="failed", why=why)
    return Check(
        room="ingest",
        state="degraded",
        why=f"requests are asked to retry: {why}",
        next_step="it recovers by itself; otherwise see the log of the node",
    )


def _hot(context: NodeContext) -> Check:
    tier = context.tier
    if tier is None:
        return Check(room="hot", state="ok", why="off (hot.enabled = false)")
    if tier.died is not None:
        return Check(
            room="hot",
            state="failed",
            why=f"new rows are not visible: {tier.died!r}",
            next_step="ingest continues; restart the node, it reads the missing rows from the log",
        )
    trouble = tier.trouble or tier.disk_trouble
    if trouble is not None:
        return Check(
            room="hot",
            state="degraded",
            why=trouble,
            next_step="see docs/operating.md, Rows are missing",
        )
    if tier.is_full:
        return Check(
            room="hot",
            state="degraded",
            why=f"{tier.memory_bytes} bytes of rows are unsealed, the limit hot.memory_bytes_max; "
            "new rows are late",
            next_step="check the disk: it is too slow or full for sealing",
        )
    return Check(room="hot", state="ok", why=None if tier.is_complete else "catching up")


def _lake(context: NodeContext) -> Check:
    lake = context.lake
    if lake is None:
        return Check(room="lake", state="ok", why="off, or not installed")
    if lake.died is not None:
        return Check(
            room="lake",
            state="failed",
            why=f"appends to the tables stopped: {lake.died!r}",
            next_step="ingest and SQL continue; restart the node",
        )
    if lake.given_up is not None:
        return Check(
            room="lake",
            state="degraded",
            why=f"automatic appends stopped: {lake.given_up}",
            next_step="if another node appends to these tables, stop one of them, then restart",
        )
    if lake.trouble is not None:
        return Check(
            room="lake",
            state="degraded",
            why=lake.trouble,
            next_step="it is retried; ingest and SQL continue, the log keeps all data",
        )
    return Check(room="lake", state="ok", why=f"Spark {lake.session.state.replace('_', ' ')}")


def _query(context: NodeContext) -> Check:
    if context.sql is None:
        return Check(room="query", state="ok", why="off (hot.enabled = false)")
    if context.tier is not None and context.tier.died is not None:
        return Check(
            room="query",
            state="failed",
            why="SQL is refused, because recent rows would be missing",
            next_step="restart the node",
        )
    return Check(room="query", state="ok")
