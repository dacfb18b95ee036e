"""Data sources, and the links between them.

Grafana replaces `$NAME` in the values of these files, so that a `$` of its own is written twice.
"""

from __future__ import annotations

from typing import Any

PROMETHEUS, LOKI, TEMPO, JAEGER = (
    "frazil-prometheus",
    "frazil-loki",
    "frazil-tempo",
    "frazil-jaeger",
)
"""Ids of the data sources, which dashboards and links refer to."""
PROMETHEUS_PATH, TEMPO_PATH, JAEGER_PATH = "/prometheus", "/tempo", "/jaeger"
"""Below the address of the node. Loki's paths begin at the address itself."""
SAMPLE_INTERVAL = "15s"
"""Of the series that are computed from spans; panels ask for no finer steps."""
LOG_LINES_MAX = 1000
SHIFT = "5m"
"""How far from a span its logs may be."""
AUTHORIZATION = "Authorization"


def data_sources(url: str, token_variable: str | None) -> dict[str, Any]:
    """Return the content of a file of data sources. With `token_variable`, Grafana sends the token
    that is in that variable of its environment."""
    base = url.rstrip("/")
    sources = [
        _source(PROMETHEUS, "prometheus", base + PROMETHEUS_PATH, _prometheus(), is_default=True),
        _source(LOKI, "loki", base, _loki()),
        _source(TEMPO, "tempo", base + TEMPO_PATH, _tempo()),
        _source(JAEGER, "jaeger", base + JAEGER_PATH, _jaeger()),
    ]
    if token_variable is not None:
        for source in sources:
            source["jsonData"]["httpHeaderName1"] = AUTHORIZATION
            source["secureJsonData"] = {"httpHeaderValue1": f"Bearer ${token_variable}"}
    return {"apiVersion": 1, "prune": True, "datasources": sources}


def _source(
    uid: str, kind: str, url: str, options: dict[str, Any], *, is_default: bool = False
) -> dict[str, Any]:
    return {
        "name": f"Frazil {kind.title()}",
        "uid": uid,
        "type": kind,
        "access": "proxy",
        "url": url,
        "isDefault": is_default,
        "editable": True,
        "jsonData": options,
    }


def _prometheus() -> dict[str, Any]:
    return {
        "httpMethod": "POST",
        "prometheusType": "Prometheus",
        "timeInterval": SAMPLE_INTERVAL,
        "manageAlerts": True,
        "exemplarTraceIdDestinations": [{"name": "trace_id", "datasourceUid": TEMPO}],
    }


def _loki() -> dict[str, Any]:
    return {
        "maxLines": LOG_LINES_MAX,
        "derivedFields": [
            {
                "name": "Trace",
                "matcherType": "label",
                "matcherRegex": "trace_id",
                "url": "$${__value.raw}",
                "urlDisplayLabel": "View trace",
                "datasourceUid": TEMPO,
            }
        ],
    }


def _tempo() -> dict[str, Any]:
    return {
        "tracesToLogsV2": _traces_to_logs(),
        "tracesToMetrics": {
            "datasourceUid": PROMETHEUS,
            "spanStartTimeShift": f"-{SHIFT}",
            "spanEndTimeShift": SHIFT,
            "tags": [{"key": "service.name", "value": "service"}],
            "queries": [
                {
                    "name": "Request rate",
                    "query": "sum(rate(traces_spanmetrics_calls_total{$$__tags}[5m]))",
                },
                {
                    "name": "Error rate",
                    "query": "sum(rate(traces_spanmetrics_calls_total"
                    '{$$__tags, status_code="STATUS_CODE_ERROR"}[5m]))',
                },
            ],
        },
        "serviceMap": {"datasourceUid": PROMETHEUS},
        "nodeGraph": {"enabled": True},
        "search": {"hide": False},
        "streamingEnabled": {"search": False, "metrics": False},
    }


def _jaeger() -> dict[str, Any]:
    return {"tracesToLogsV2": _traces_to_logs(), "nodeGraph": {"enabled": True}}


def _traces_to_logs() -> dict[str, Any]:
    return {
        "datasourceUid": LOKI,
        "spanStartTimeShift": f"-{SHIFT}",
        "spanEndTimeShift": SHIFT,
        "tags": [{"key": "service.name", "value": "service_name"}],
        "filterByTraceID": False,
        "filterBySpanID": False,
        "customQuery": True,
        "query": '{$${__tags}} | trace_id="$${__trace.traceId}"',
    }
