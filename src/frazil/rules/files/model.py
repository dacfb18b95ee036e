"""RuleFile, RuleGroup, AlertRule, RecordingRule: what a rule file says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Language = Literal["promql", "sql"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleQuery:
    """What a rule evaluates."""

    language: Language
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertRule:
    """A rule that makes an alert of each row that its query returns."""

    name: str
    query: RuleQuery
    for_ms: int = 0
    """How long a row must be there before its alert fires."""
    keep_firing_for_ms: int = 0
    """How long an alert fires on after its row is gone."""
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordingRule:
    """A rule that stores the rows of its query as series."""

    name: str
    query: RuleQuery
    labels: Mapping[str, str] = field(default_factory=dict)


Rule = AlertRule | RecordingRule


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleGroup:
    """Rules that are evaluated together, one after the other."""

    file: str
    name: str
    rules: tuple[Rule, ...]
    interval_ms: int | None = None
    """None: as the settings say; also below."""
    query_offset_ms: int | None = None
    limit: int = 0
    """Rows that a rule may return; 0: only the limit of the node."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """Of all its rules, which may have others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleFile:
    """One file."""

    path: str
    groups: tuple[RuleGroup, ...]
