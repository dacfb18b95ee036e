"""Dashboard: the Kafka port and the lake, from the metrics of the node's page `/metrics`."""

from __future__ import annotations

from frazil.cli.grafana.node import JOB, RATE
from frazil.cli.grafana.panels import (
    GrafanaDashboard,
    GrafanaPanel,
    label_variable,
    prometheus_query,
)


def _sum(metric: str, by: str = "") -> str:
    labels = f" by ({by})" if by else ""
    return f"sum{labels} ({metric}{JOB})"


def _rate(metric: str, by: str = "") -> str:
    labels = f" by ({by})" if by else ""
    return f"sum{labels} (rate({metric}{JOB}{RATE}))"


KAFKA_LAKE = GrafanaDashboard(
    uid="frazil-kafka-lake",
    title="Frazil / Kafka and lake",
    variables=(label_variable("job", "job", "label_values(frazil_build_info, job)"),),
    panels=(
        GrafanaPanel(
            title="Kafka: bytes",
            unit="Bps",
            queries=(
                prometheus_query(_rate("frazil_kafka_produced_bytes_total"), "produced"),
                prometheus_query(_rate("frazil_kafka_fetched_bytes_total"), "fetched"),
            ),
        ),
        GrafanaPanel(
            title="Kafka: records produced",
            unit="rowsps",
            queries=(prometheus_query(_rate("frazil_kafka_produced_records_total"), "records"),),
        ),
        GrafanaPanel(
            title="Kafka: requests",
            unit="reqps",
            queries=(prometheus_query(_rate("frazil_kafka_requests_total", "api"), "{{api}}"),),
        ),
        GrafanaPanel(
            title="Kafka: lag of consumer groups",
            queries=(
                prometheus_query(
                    f"topk(20, {_sum('frazil_kafka_group_lag_offsets', 'group')})", "{{group}}"
                ),
            ),
        ),
        GrafanaPanel(
            title="Kafka: connections",
            queries=(prometheus_query(_sum("frazil_kafka_connections"), "connections"),),
        ),
        GrafanaPanel(
            title="Kafka: batches refused",
            unit="ops",
            queries=(
                prometheus_query(
                    _rate("frazil_kafka_refused_batches_total", "reason"), "{{reason}}"
                ),
            ),
        ),
        GrafanaPanel(
            title="Lake: rows committed",
            unit="rowsps",
            queries=(prometheus_query(_rate("frazil_lake_rows_total", "table"), "{{table}}"),),
        ),
        GrafanaPanel(
            title="Lake: not in tables yet",
            unit="bytes",
            queries=(prometheus_query(_sum("frazil_lake_pending_bytes"), "log"),),
        ),
        GrafanaPanel(
            title="Lake: time since the last commit",
            unit="s",
            queries=(
                prometheus_query(f"max(frazil_lake_last_commit_age_seconds{JOB})", "last commit"),
            ),
        ),
        GrafanaPanel(
            title="Lake: size of tables",
            unit="bytes",
            is_stacked=True,
            queries=(prometheus_query(_sum("frazil_lake_table_bytes", "table"), "{{table}}"),),
        ),
        GrafanaPanel(
            title="Lake: data files",
            queries=(prometheus_query(_sum("frazil_lake_table_files", "table"), "{{table}}"),),
        ),
        GrafanaPanel(
            title="Lake: failures",
            unit="ops",
            queries=(
                prometheus_query(_rate("frazil_lake_failures_total"), "rounds"),
                prometheus_query(_rate("frazil_lake_maintenance_failures_total"), "maintenance"),
                prometheus_query(_rate("frazil_lake_freeze_failures_total"), "freezes"),
            ),
        ),
    ),
)
