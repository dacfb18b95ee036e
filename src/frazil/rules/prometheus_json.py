"""Rules and alerts in the JSON of Prometheus' API."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from frazil.rules.report import AlertReport, RuleGroupReport, RuleReport, RulesReport
from frazil.rules.template.values import exponent_text

NEVER = "0001-01-01T00:00:00Z"
KINDS = {"alert": "alerting", "record": "recording"}


def rules_data(report: RulesReport, kind: str | None = None) -> dict[str, Any]:
    """Return `data` of /api/v1/rules. `kind` is the parameter `type`: alert or record."""
    groups = [_group(group, KINDS.get(kind or "")) for group in report.groups]
    return {"groups": [group for group in groups if group["rules"] or kind is None]}


def alerts_data(report: RulesReport) -> dict[str, Any]:
    """Return `data` of /api/v1/alerts."""
    rules = (rule for group in report.groups for rule in group.rules)
    return {"alerts": [alert for rule in rules for alert in _alerts(rule.alerts)]}


def _group(group: RuleGroupReport, kind: str | None) -> dict[str, Any]:
    return {
        "name": group.name,
        "file": group.file,
        "interval": group.interval_ms / 1000,
        "limit": group.limit,
        "evaluationTime": group.evaluation_ms / 1000,
        "lastEvaluation": _time(group.evaluated_at_ms),
        "rules": [_rule(rule) for rule in group.rules if kind in (None, rule.kind)],
    }


def _rule(rule: RuleReport) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "name": rule.name,
        "query": rule.query,
        "labels": rule.labels,
        "health": rule.health,
        "evaluationTime": rule.evaluation_ms / 1000,
        "lastEvaluation": _time(rule.evaluated_at_ms),
        "type": rule.kind,
    }
    if rule.last_error is not None:
        fields["lastError"] = rule.last_error
    if rule.kind == "alerting":
        fields |= {
            "state": rule.state,
            "duration": rule.for_ms / 1000,
            "keepFiringFor": rule.keep_firing_for_ms / 1000,
            "annotations": rule.annotations,
            "alerts": list(_alerts(rule.alerts)),
        }
    return fields


def _alerts(alerts: Iterable[AlertReport]) -> Iterable[dict[str, Any]]:
    for alert in alerts:
        if alert.state == "resolved":
            continue
        fields: dict[str, Any] = {
            "labels": alert.labels,
            "annotations": alert.annotations,
            "state": alert.state,
            "activeAt": _time(alert.active_at_ms),
            "value": exponent_text(float(alert.value)),
        }
        if alert.keep_firing_since_ms is not None:
            fields["keepFiringSince"] = _time(alert.keep_firing_since_ms)
        yield fields


def _time(ms: int | None) -> str:
    if ms is None:
        return NEVER
    return datetime.fromtimestamp(ms / 1000, UTC).isoformat().replace("+00:00", "Z")
