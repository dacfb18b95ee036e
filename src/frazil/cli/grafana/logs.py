"""Dashboard: logs."""

from __future__ import annotations

from frazil.cli.grafana.data_sources import LOKI
from frazil.cli.grafana.panels import GrafanaDashboard, GrafanaPanel, PanelQuery, label_variable

SELECTOR = '{service_name=~"$service"}'
ERRORS = f'{SELECTOR} | severity_text=~"(?i)(error|fatal).*"'

LOGS = GrafanaDashboard(
    uid="frazil-logs",
    title="Frazil / Logs",
    variables=(label_variable("service", "service_name", "", LOKI),),
    panels=(
        GrafanaPanel(
            title="Lines by service",
            source=LOKI,
            width=12,
            is_stacked=True,
            queries=(
                PanelQuery(
                    expr=f"sum by (service_name) (count_over_time({SELECTOR}[$__auto]))",
                    legend="{{service_name}}",
                ),
            ),
        ),
        GrafanaPanel(
            title="Lines by severity",
            source=LOKI,
            width=12,
            is_stacked=True,
            queries=(
                PanelQuery(
                    expr=f"sum by (severity_text) (count_over_time({SELECTOR}[$__auto]))",
                    legend="{{severity_text}}",
                ),
            ),
        ),
        GrafanaPanel(
            title="Errors by service",
            source=LOKI,
            width=24,
            queries=(
                PanelQuery(
                    expr=f"sum by (service_name) (count_over_time({ERRORS} [$__auto]))",
                    legend="{{service_name}}",
                ),
            ),
        ),
        GrafanaPanel(
            title="Errors",
            kind="logs",
            source=LOKI,
            width=24,
            height=10,
            queries=(PanelQuery(expr=ERRORS),),
        ),
        GrafanaPanel(
            title="All lines",
            kind="logs",
            source=LOKI,
            width=24,
            height=12,
            queries=(PanelQuery(expr=SELECTOR),),
        ),
    ),
)
