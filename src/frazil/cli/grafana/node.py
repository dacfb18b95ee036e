"""Dashboard: a Frazil node, from the metrics of its page `/metrics`."""

from __future__ import annotations

from frazil.cli.grafana.panels import (
    GrafanaDashboard,
    GrafanaPanel,
    label_variable,
    prometheus_query,
)

JOB = '{job=~"$job"}'
RATE = "[$__rate_interval]"


def _rate(name: str, by: str = "") -> str:
    labels = f" by ({by})" if by else ""
    return f"sum{labels} (rate({name}{JOB}{RATE}))"


def _quantile(name: str) -> str:
    return f"histogram_quantile(0.99, sum by (le) (rate({name}_bucket{JOB}{RATE})))"


NODE = GrafanaDashboard(
    uid="frazil-node",
    title="Frazil / Node",
    variables=(label_variable("job", "job", "label_values(frazil_build_info, job)"),),
    panels=(
        GrafanaPanel(
            title="Records accepted",
            unit="rowsps",
            queries=(
                prometheus_query(
                    _rate("frazil_ingest_accepted_records_total", "signal"), "{{signal}}"
                ),
            ),
        ),
        GrafanaPanel(
            title="Requests refused",
            unit="reqps",
            queries=(
                prometheus_query(
                    _rate("frazil_ingest_refused_requests_total", "reason"), "{{reason}}"
                ),
            ),
        ),
        GrafanaPanel(
            title="99 % are acknowledged within",
            unit="s",
            queries=(
                prometheus_query(_quantile("frazil_ingest_ack_seconds"), "acknowledgement"),
                prometheus_query(_quantile("frazil_log_sync_seconds"), "fdatasync"),
            ),
        ),
        GrafanaPanel(
            title="Queries",
            unit="reqps",
            queries=(
                prometheus_query(_rate("frazil_query_queries_total", "outcome"), "{{outcome}}"),
            ),
        ),
        GrafanaPanel(
            title="99 % of queries take at most",
            unit="s",
            queries=(prometheus_query(_quantile("frazil_query_duration_seconds"), "queries"),),
        ),
        GrafanaPanel(
            title="Offsets that queries do not see yet",
            queries=(prometheus_query(f"sum(frazil_hot_lag_offsets{JOB})", "hot tier"),),
        ),
        GrafanaPanel(
            title="Disk",
            unit="bytes",
            queries=(
                prometheus_query(f"sum(frazil_log_used_bytes{JOB})", "log"),
                prometheus_query(f"sum(frazil_hot_disk_bytes{JOB})", "hot tier"),
                prometheus_query(f"sum(frazil_disk_free_bytes{JOB})", "free"),
            ),
        ),
        GrafanaPanel(
            title="Memory",
            unit="bytes",
            queries=(
                prometheus_query(f"sum(process_resident_memory_bytes{JOB})", "process"),
                prometheus_query(f"sum(frazil_hot_memory_bytes{JOB})", "rows in memory"),
            ),
        ),
        GrafanaPanel(
            title="Processor",
            unit="percentunit",
            queries=(prometheus_query(_rate("process_cpu_seconds_total"), "process"),),
        ),
        GrafanaPanel(
            title="Alerts that fire",
            queries=(prometheus_query('sum by (alertname) (ALERTS{alertstate="firing"})'),),
        ),
        GrafanaPanel(
            title="Evaluations of rules",
            unit="ops",
            queries=(
                prometheus_query(_rate("frazil_rules_evaluations_total", "outcome"), "{{outcome}}"),
                prometheus_query(_rate("frazil_rules_missed_evaluations_total"), "missed"),
            ),
        ),
        GrafanaPanel(
            title="API requests",
            unit="reqps",
            queries=(
                prometheus_query(_rate("frazil_serve_requests_total", "status"), "{{status}}"),
            ),
        ),
    ),
)
