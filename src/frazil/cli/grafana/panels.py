"""Panels and dashboards as Grafana's JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from frazil.cli.grafana.data_sources import LOKI, PROMETHEUS

SCHEMA_VERSION = 39
"""Of dashboards; Grafana 11 and later upgrade it."""
GRID_WIDTH = 24
TAG = "frazil"
REFRESH = "30s"
RANGE = "now-1h"

PanelKind = Literal["timeseries", "stat", "table", "logs", "bargauge"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PanelQuery:
    """One query of a panel."""

    expr: str
    legend: str = ""
    is_instant: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class GrafanaPanel:
    """One panel. Its width is a share of 24."""

    title: str
    queries: tuple[PanelQuery, ...]
    kind: PanelKind = "timeseries"
    unit: str = "short"
    width: int = 8
    height: int = 8
    source: str = PROMETHEUS
    description: str = ""
    has_exemplars: bool = False
    is_stacked: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class GrafanaDashboard:
    """One dashboard."""

    uid: str
    title: str
    panels: tuple[GrafanaPanel, ...]
    variables: tuple[dict[str, Any], ...] = field(default_factory=tuple)

    def content(self) -> dict[str, Any]:
        """Return its JSON."""
        return {
            "uid": self.uid,
            "title": self.title,
            "tags": [TAG],
            "schemaVersion": SCHEMA_VERSION,
            "version": 1,
            "editable": True,
            "refresh": REFRESH,
            "time": {"from": RANGE, "to": "now"},
            "templating": {"list": list(self.variables)},
            "annotations": {"list": []},
            "links": [],
            "panels": _laid_out(self.panels),
        }


def prometheus_query(expr: str, legend: str = "", *, is_instant: bool = False) -> PanelQuery:
    return PanelQuery(expr=expr, legend=legend, is_instant=is_instant)


def label_variable(name: str, label: str, query: str, source: str = PROMETHEUS) -> dict[str, Any]:
    """Return a variable with the values of a label, of which several may be chosen."""
    kind = "loki" if source == LOKI else "prometheus"
    asked: Any = query
    if source == LOKI:
        asked = {"label": label, "refId": "values", "stream": query, "type": 1}
    return {
        "name": name,
        "label": name.title(),
        "type": "query",
        "datasource": {"type": kind, "uid": source},
        "query": asked,
        "refresh": 2,
        "multi": True,
        "includeAll": True,
        "allValue": ".+",
        "current": {"text": "All", "value": "$__all"},
        "sort": 1,
    }


def _laid_out(panels: Sequence[GrafanaPanel]) -> list[dict[str, Any]]:
    """Return panels in rows from left to right."""
    found = []
    x = y = row_height = 0
    for number, panel in enumerate(panels, 1):
        if x + panel.width > GRID_WIDTH:
            x, y, row_height = 0, y + row_height, 0
        place = {"x": x, "y": y, "w": panel.width, "h": panel.height}
        found.append({"id": number, "gridPos": place, **_panel(panel)})
        x += panel.width
        row_height = max(row_height, panel.height)
    return found


def _panel(panel: GrafanaPanel) -> dict[str, Any]:
    source = {"type": "loki" if panel.source == LOKI else "prometheus", "uid": panel.source}
    defaults: dict[str, Any] = {"unit": panel.unit, "min": 0}
    if panel.kind == "timeseries":
        stacking = {"mode": "normal" if panel.is_stacked else "none"}
        defaults["custom"] = {"fillOpacity": 10, "showPoints": "never", "stacking": stacking}
    content: dict[str, Any] = {
        "type": panel.kind,
        "title": panel.title,
        "description": panel.description,
        "datasource": source,
        "fieldConfig": {"defaults": defaults, "overrides": []},
        "options": _options(panel.kind),
        "targets": [
            _target(panel, source, query, chr(ord("A") + index))
            for index, query in enumerate(panel.queries)
        ],
    }
    if panel.kind == "table":
        content["transformations"] = [
            {"id": "merge", "options": {}},
            {"id": "organize", "options": {"excludeByName": {"Time": True}}},
        ]
    return content


def _options(kind: PanelKind) -> dict[str, Any]:
    match kind:
        case "timeseries":
            return {
                "legend": {"displayMode": "list", "placement": "bottom"},
                "tooltip": {"mode": "multi", "sort": "desc"},
            }
        case "stat":
            return {"reduceOptions": {"calcs": ["lastNotNull"]}, "graphMode": "area"}
        case "logs":
            return {"showTime": True, "wrapLogMessage": True, "enableLogDetails": True}
        case "bargauge":
            return {"orientation": "horizontal", "reduceOptions": {"calcs": ["lastNotNull"]}}
    return {"showHeader": True}


def _target(
    panel: GrafanaPanel, source: dict[str, str], query: PanelQuery, ref: str
) -> dict[str, Any]:
    target: dict[str, Any] = {"refId": ref, "datasource": source, "expr": query.expr}
    if query.legend:
        target["legendFormat"] = query.legend
    if panel.source == LOKI:
        return {**target, "queryType": "instant" if query.is_instant else "range"}
    target |= {"editorMode": "code", "exemplar": panel.has_exemplars}
    if query.is_instant:
        form = "table" if panel.kind == "table" else "time_series"
        return {**target, "instant": True, "range": False, "format": form}
    return {**target, "instant": False, "range": True}
