"""open_rules: rules over the tables of a node."""

from __future__ import annotations

from collections.abc import Callable

from frazil.model import Clock
from frazil.results import CancelToken, Limits, Result
from frazil.rules.evaluate import RuleQueries
from frazil.rules.files.sources import RuleFiles
from frazil.rules.notify.notifier import Notifier
from frazil.rules.promql_rows import PromqlRows, check_promql
from frazil.rules.runner import RuleRunner
from frazil.rules.state.restore import StoredFor
from frazil.rules.store.log_series import AppendableLog, LogSeries
from frazil.rules.store.stored_for import ROWS_MAX, read_stored_for
from frazil.settings import RulesConfig

SqlOf = Callable[..., Result]
"""Runs SQL with the keyword arguments `limits` and `cancel_token`."""


def open_rules(
    config: RulesConfig,
    sql: SqlOf,
    log: AppendableLog,
    watermark: Callable[[str], int],
    *,
    bytes_max: int,
    clock: Clock,
) -> RuleRunner:
    """Return the rules of a node, not yet started. `watermark` says how far queries see a
    topic; `bytes_max` is of the points that PromQL reads."""

    def run_sql(text: str, limits: Limits, cancel_token: CancelToken) -> Result:
        return sql(text, limits=limits, cancel_token=cancel_token)

    def read_stored(now_ms: int) -> StoredFor:
        return read_stored_for(
            run_sql,
            now_ms,
            outage_ms=config.outage_ms,
            grace_ms=config.grace_ms,
            limits=Limits(timeout_ms=config.timeout_ms, rows_max=ROWS_MAX),
        )

    limits = Limits(timeout_ms=config.timeout_ms, rows_max=config.rows_max)
    promql = PromqlRows(run_sql, bytes_max=bytes_max, clock=clock)
    queries = RuleQueries(run_sql, promql, limits=limits, rows_max=config.rows_max)
    queue_max = config.queue_max
    notifiers = [
        *(Notifier("alertmanager", url, queue_max=queue_max) for url in config.alertmanagers),
        *(Notifier("webhook", url, queue_max=queue_max) for url in config.webhooks),
    ]
    return RuleRunner(
        config,
        RuleFiles(config.files, check_promql),
        queries,
        LogSeries(log, watermark, clock=clock),
        read_stored,
        notifiers,
        clock,
    )
