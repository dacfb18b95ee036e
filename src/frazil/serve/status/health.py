"""Health: is each room well, why not, and what to do next. What `/livez` and `/readyz` say.

A node is alive while its event loop answers, whatever Spark or a catalog does. It is ready while no
room has failed and it does not stop. Degraded means: what was acknowledged is safe and is still
answered for, and something has to be looked at.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

import msgspec

from frazil.serve.context import NodeContext
from frazil.serve.uptime import Uptime

Health = Literal["ok", "degraded", "failed"]


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """How one room does."""

    room: str
    state: Health
    why: str | None = None
    """What is wrong, or what is worth knowing."""
    next_step: str | None = None
    """What a human can do; None where nothing has to be done."""


def checks_of(rooms: NodeContext) -> list[Check]:
    """Every room, in the order of the river. Looks at memory only; call it from the event loop."""
    return [
        _node(rooms.life),
        _log(rooms),
        _ingest(rooms),
        _hot(rooms),
        _lake(rooms),
        _query(rooms),
    ]


def is_ready(checks: Iterable[Check]) -> bool:
    """Should requests be sent here?"""
    return all(check.state != "failed" for check in checks)


def readiness_text(checks: list[Check]) -> str:
    """A line for each room, as Kubernetes writes them, and the verdict."""
    verdict = "readyz check passed" if is_ready(checks) else "readyz check failed"
    return "".join(f"{_line(check)}\n" for check in checks) + f"{verdict}\n"


def _line(check: Check) -> str:
    sign = "[-]" if check.state == "failed" else "[+]"
    said = "; ".join(part for part in (check.why, check.next_step) if part is not None)
    # Messages may have lines of their own, such as the last ones that Spark said.
    said = " ".join(said.split())
    return f"{sign}{check.room} {check.state}{f': {said}' if said else ''}"


def _node(life: Uptime) -> Check:
    if life.state == "running":
        return Check(room="node", state="ok")
    return Check(room="node", state="failed", why=f"this node is {life.state}")


def _log(rooms: NodeContext) -> Check:
    log = rooms.log
    if log.writer.failure is not None:
        return Check(
            room="log",
            state="failed",
            why=f"nothing is written any more: {log.writer.failure}",
            next_step="look at the disk, then start the node again",
        )
    if log.budget.is_full:
        return Check(
            room="log",
            state="failed",
            why=f"the log is full: {log.budget.used_bytes} of {log.budget.hard_bytes_max} bytes",
            next_step=f"find who holds it back ({_slowest(rooms)}), free room on the disk, or "
            "raise log.disk_bytes_max",
        )
    if log.budget.is_tight:
        return Check(
            room="log",
            state="degraded",
            why=f"the log is almost full: {log.budget.used_bytes} of {log.budget.hard_bytes_max} "
            "bytes",
            next_step=f"find who holds it back: {_slowest(rooms)}",
        )
    return Check(room="log", state="ok")


def _slowest(rooms: NodeContext) -> str:
    """Who has most of the log before him, by name."""
    lags = {subscriber.name: subscriber.lag() for subscriber in rooms.log.subscribers()}
    if rooms.lake is not None:
        lags["the lake"] = sum(
            partition.view.durable_watermark
            - (rooms.log.lake_watermark(topic.name, partition.index) or 0)
            for topic in rooms.log.topics()
            if topic.config.awaits_lake
            for partition in topic.partitions
        )
    elif any(topic.config.awaits_lake for topic in rooms.log.topics()):
        return "telemetry stays until a lake has it, and there is none"
    if not lags:
        return "nobody reads it"
    name = max(lags, key=lambda each: lags[each])
    return f"{name} lags by {lags[name]} offsets"


def _ingest(rooms: NodeContext) -> Check:
    admission = rooms.otlp.admission()
    why = admission.why_closed
    if why is None:
        return Check(room="ingest", state="ok")
    if admission.is_draining:
        return Check(room="ingest", state="failed", why=why)
    return Check(
        room="ingest",
        state="degraded",
        why=f"requests are told to come back: {why}",
        next_step="it opens by itself; if it does not, look at the log",
    )


def _hot(rooms: NodeContext) -> Check:
    tier = rooms.tier
    if tier is None:
        return Check(room="hot", state="ok", why="off (hot.enabled = false)")
    if tier.died is not None:
        return Check(
            room="hot",
            state="failed",
            why=f"nothing new becomes visible: {tier.died!r}",
            next_step="acknowledgements go on; start the node again, rows come from the log",
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
            why=f"{tier.memory_bytes} bytes of rows wait for the disk, which is "
            "hot.memory_bytes_max: rows come late",
            next_step="look at the disk: it is too slow or full for sealing",
        )
    return Check(room="hot", state="ok", why=None if tier.is_whole else "catching up")


def _lake(rooms: NodeContext) -> Check:
    lake = rooms.lake
    if lake is None:
        return Check(room="lake", state="ok", why="off, or not installed")
    if lake.died is not None:
        return Check(
            room="lake",
            state="failed",
            why=f"nobody fills the tables: {lake.died!r}",
            next_step="acknowledgements and SQL go on; start the node again",
        )
    if lake.given_up is not None:
        return Check(
            room="lake",
            state="degraded",
            why=f"no round comes by itself any more: {lake.given_up}",
            next_step="if somebody else fills these tables, stop one of the two, then start again",
        )
    if lake.trouble is not None:
        return Check(
            room="lake",
            state="degraded",
            why=lake.trouble,
            next_step="it is tried again; acknowledgements and hot SQL go on, the log keeps it all",
        )
    return Check(room="lake", state="ok", why=f"Spark {lake.session.state.replace('_', ' ')}")


def _query(rooms: NodeContext) -> Check:
    if rooms.sql is None:
        return Check(room="query", state="ok", why="off (hot.enabled = false)")
    if rooms.tier is not None and rooms.tier.died is not None:
        return Check(
            room="query",
            state="failed",
            why="SQL is refused, as it would not show recent rows",
            next_step="start the node again",
        )
    return Check(room="query", state="ok")
