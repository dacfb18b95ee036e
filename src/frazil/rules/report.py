"""RulesReport: rules, alerts and their health, as the API shows them. Immutable."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from frazil.model import doc

RuleHealth = Literal["ok", "err", "unknown"]


class AlertReport(msgspec.Struct, frozen=True, kw_only=True):
    """One alert."""

    labels: dict[str, str]
    annotations: dict[str, str]
    state: Literal["pending", "firing", "resolved"]
    value: Annotated[str, doc("Value of its row at the last evaluation.")]
    active_at_ms: Annotated[int, doc("Since when its row has been there.")]
    fired_at_ms: int | None
    resolved_at_ms: int | None
    keep_firing_since_ms: Annotated[
        int | None, doc("Since when its row has been gone while keep_firing_for lets it fire on.")
    ]


class RuleReport(msgspec.Struct, frozen=True, kw_only=True):
    """One rule with the outcome of its last evaluation."""

    name: str
    kind: Literal["alerting", "recording"]
    language: Literal["promql", "sql"]
    query: str
    labels: dict[str, str]
    annotations: dict[str, str]
    for_ms: int
    keep_firing_for_ms: int
    state: Annotated[
        Literal["inactive", "pending", "firing"], doc("Of its most urgent alert; else inactive.")
    ]
    health: Annotated[RuleHealth, doc("`err`: its last evaluation failed, and changed nothing.")]
    last_error: Annotated[str | None, doc("Why the last evaluation failed.")]
    evaluated_at_ms: Annotated[int | None, doc("Time of the last evaluation.")]
    evaluation_ms: Annotated[float, doc("How long it took.")]
    alerts: list[AlertReport]


class RuleGroupReport(msgspec.Struct, frozen=True, kw_only=True):
    """A group of rules, which are evaluated together."""

    name: str
    file: str
    interval_ms: int
    query_offset_ms: int
    limit: int
    evaluated_at_ms: int | None
    evaluation_ms: float
    missed_count: Annotated[int, doc("Evaluations that were skipped since the start.")]
    rules: list[RuleReport]


class AlertChange(msgspec.Struct, frozen=True, kw_only=True):
    """An alert that has changed its state."""

    at_ms: int
    group: str
    rule: str
    labels: dict[str, str]
    state: Literal["pending", "firing", "resolved", "dropped"]
    """`dropped`: it was pending, and never fired."""
    value: str


class NotifierReport(msgspec.Struct, frozen=True, kw_only=True):
    """One receiver of notifications."""

    url: Annotated[str, doc("Without its path and credentials.")]
    kind: Literal["alertmanager", "webhook"]
    sent_count: int
    failed_count: Annotated[int, doc("Attempts that failed; they are repeated.")]
    dropped_count: Annotated[int, doc("Notifications given up.")]
    waiting_count: int
    last_error: str | None


class RulesReport(msgspec.Struct, frozen=True, kw_only=True):
    """All rules of a node."""

    groups: list[RuleGroupReport]
    file_error: Annotated[
        str | None, doc("Why the files could not be read last; the rules before go on.")
    ]
    notifiers: list[NotifierReport]
    changes: Annotated[list[AlertChange], doc("Since the start, the latest first.")]
