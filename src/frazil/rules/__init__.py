"""rules: alerts and recording rules, evaluated in the reader.

    rule files ─> groups, when due ─> query ─> state of each alert ─> notifiers
                                         │              └─> ALERTS, ALERTS_FOR_STATE ─┐
                                         └─> recorded series ──────────────────> the log

    runner.py        RuleRunner: the thread that does all this
    group_runner.py  GroupRunner: one group of rules
    schedule.py      EvaluationTimes: when a group is due
    evaluate.py      RuleQueries: PromQL and SQL as of a time
    promql_rows.py   PromqlRows: PromQL over the tables
    sql_text.py      `$time` in SQL
    samples.py       RuleSample; names of labels
    durations.py     Prometheus' durations
    alert_series.py  ALERTS and ALERTS_FOR_STATE
    charts.py        the query of a rule over time
    watchdog.py      the alert that always fires
    report.py        RulesReport: rules and alerts as the API shows them
    prometheus_json.py  the same as Prometheus shows them
    opening.py       wires all of it over a node

    files/           rule files
    template/        Go templates in labels and annotations
    state/           what is known between evaluations
    store/           series in the log
    notify/          Alertmanager and webhooks

Threads: one evaluates; each receiver of notifications has one that sends.
"""

from frazil.rules.charts import RuleChart
from frazil.rules.evaluate import RuleQueries
from frazil.rules.files.reader import read_rule_file
from frazil.rules.files.sources import RuleFiles
from frazil.rules.opening import open_rules
from frazil.rules.prometheus_json import alerts_data, rules_data
from frazil.rules.report import (
    AlertChange,
    AlertReport,
    NotifierReport,
    RuleGroupReport,
    RuleReport,
    RulesReport,
)
from frazil.rules.runner import RuleRunner
from frazil.rules.store.log_series import AppendableLog

__all__ = [
    "AlertChange",
    "AlertReport",
    "AppendableLog",
    "NotifierReport",
    "RuleChart",
    "RuleFiles",
    "RuleGroupReport",
    "RuleQueries",
    "RuleReport",
    "RuleRunner",
    "RulesReport",
    "alerts_data",
    "open_rules",
    "read_rule_file",
    "rules_data",
]
