"""Dashboard: requests, errors and durations of services, from their spans."""

from __future__ import annotations

from frazil.cli.grafana.panels import (
    GrafanaDashboard,
    GrafanaPanel,
    label_variable,
    prometheus_query,
)

CALLS = (
    "traces_spanmetrics_calls_total"
    '{service=~"$service", span_kind=~"SPAN_KIND_SERVER|SPAN_KIND_CONSUMER"}'
)
ERRORS = CALLS.replace("}", ', status_code="STATUS_CODE_ERROR"}')
LATENCY = CALLS.replace("calls_total", "latency_bucket")
RATE = "[$__rate_interval]"


def _quantile(share: float, by: str) -> str:
    return f"histogram_quantile({share}, sum by (le{by}) (rate({LATENCY}{RATE})))"


RED = GrafanaDashboard(
    uid="frazil-red",
    title="Frazil / Services",
    variables=(
        label_variable(
            "service", "service", "label_values(traces_spanmetrics_calls_total, service)"
        ),
    ),
    panels=(
        GrafanaPanel(
            title="Requests",
            kind="stat",
            unit="reqps",
            height=4,
            queries=(prometheus_query(f"sum(rate({CALLS}{RATE}))"),),
        ),
        GrafanaPanel(
            title="Errors",
            kind="stat",
            unit="percentunit",
            height=4,
            queries=(prometheus_query(f"sum(rate({ERRORS}{RATE})) / sum(rate({CALLS}{RATE}))"),),
        ),
        GrafanaPanel(
            title="95 % of requests take at most",
            kind="stat",
            unit="s",
            height=4,
            queries=(prometheus_query(_quantile(0.95, "")),),
        ),
        GrafanaPanel(
            title="Requests by service",
            unit="reqps",
            queries=(prometheus_query(f"sum by (service) (rate({CALLS}{RATE}))", "{{service}}"),),
        ),
        GrafanaPanel(
            title="Errors by service",
            unit="percentunit",
            queries=(
                prometheus_query(
                    f"sum by (service) (rate({ERRORS}{RATE})) / "
                    f"sum by (service) (rate({CALLS}{RATE}))",
                    "{{service}}",
                ),
            ),
        ),
        GrafanaPanel(
            title="95th percentile by service",
            unit="s",
            has_exemplars=True,
            queries=(prometheus_query(_quantile(0.95, ", service"), "{{service}}"),),
        ),
        GrafanaPanel(
            title="Percentiles of all",
            unit="s",
            width=12,
            queries=tuple(
                prometheus_query(_quantile(share, ""), f"{share * 100:g} %")
                for share in (0.5, 0.9, 0.99)
            ),
        ),
        GrafanaPanel(
            title="Calls between services",
            unit="reqps",
            width=12,
            queries=(
                prometheus_query(
                    f"sum by (client, server) (rate(traces_service_graph_request_total{RATE}))",
                    "{{client}} to {{server}}",
                ),
            ),
        ),
        GrafanaPanel(
            title="Busiest operations",
            kind="table",
            unit="reqps",
            width=12,
            queries=(
                prometheus_query(
                    f"topk(20, sum by (service, span_name) (rate({CALLS}[$__range])))",
                    is_instant=True,
                ),
            ),
        ),
        GrafanaPanel(
            title="Operations with most errors",
            kind="table",
            unit="reqps",
            width=12,
            queries=(
                prometheus_query(
                    f"topk(20, sum by (service, span_name) (rate({ERRORS}[$__range])))",
                    is_instant=True,
                ),
            ),
        ),
    ),
)
