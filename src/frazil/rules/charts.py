"""The query of a rule over time, and how many alerts it had."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Annotated

import msgspec
import pyarrow as pa

from frazil.model import NS_PER_MS, doc
from frazil.results import CancelToken, bind_parameters
from frazil.rules.evaluate import RuleEvaluator
from frazil.rules.files.model import RuleQuery
from frazil.rules.samples import ALERT_NAME, ALERT_STATE, ALERTS, LabelPairs
from frazil.rules.store.log_series import SCOPE

POINTS_MAX = 30
"""Times at which the query of a chart runs."""
LINES_MAX = 20
"""Lines of a chart: those with the largest last values."""
STEP_MS_MIN = 1000

HISTORY = f"""
SELECT step, state, max(alerts) FROM (
    SELECT time_unix_nano,
        CAST(floor((time_unix_nano - $begin_ns) / $step_ns) AS BIGINT) AS step,
        attributes['{ALERT_STATE}'] AS state, count(*) AS alerts
    FROM metrics
    WHERE metric_name = '{ALERTS}' AND scope_name = '{SCOPE}' AND flags = 0
        AND attributes['{ALERT_NAME}'] = $name AND time >= $begin AND time < $end
    GROUP BY 1, 2, 3
) GROUP BY 1, 2
"""


class RuleLine(msgspec.Struct, frozen=True, kw_only=True):
    """One row of a query over time."""

    labels: dict[str, str]
    values: Annotated[list[float | None], doc("One for each time; null if it was not there.")]


class RuleChart(msgspec.Struct, frozen=True, kw_only=True):
    """The query of a rule over time, and how many alerts it had."""

    times_ms: list[int]
    lines: list[RuleLine]
    line_count: Annotated[int, doc("Also of those that are left out.")]
    pending: Annotated[list[int], doc("Alerts that waited, in the step before each time.")]
    firing: Annotated[list[int], doc("Alerts that fired, in the step before each time.")]


def times_of(begin_ms: int, end_ms: int) -> list[int]:
    """Return the times of a chart: at most `POINTS_MAX`, the last at the end."""
    step_ms = max(STEP_MS_MIN, -(-(end_ms - begin_ms) // POINTS_MAX))
    return list(range(end_ms, begin_ms, -step_ms))[::-1] or [end_ms]


def rule_chart(
    evaluator: RuleEvaluator,
    ask: Callable[[str], pa.Table],
    name: str,
    query: RuleQuery,
    begin_ms: int,
    end_ms: int,
    cancel_token: CancelToken,
) -> RuleChart:
    """Run a query as of several times. The error of any is that of the chart."""
    times = times_of(begin_ms, end_ms)
    step_ms = times[1] - times[0] if len(times) > 1 else STEP_MS_MIN
    index_of = {time: index for index, time in enumerate(times)}
    lines: dict[LabelPairs, list[float | None]] = {}
    for sample in evaluator.over_time(query, times, step_ms, cancel_token):
        values = lines.setdefault(sample.labels, [None] * len(times))
        values[index_of[sample.time_ms]] = sample.value
    ordered = sorted(lines.items(), key=lambda line: -_last(line[1]))
    counts = _history(ask, name, times[0] - step_ms, step_ms, len(times))
    return RuleChart(
        times_ms=times,
        lines=[
            RuleLine(labels=dict(labels), values=values) for labels, values in ordered[:LINES_MAX]
        ],
        line_count=len(ordered),
        pending=counts["pending"],
        firing=counts["firing"],
    )


def _last(values: list[float | None]) -> float:
    return next((value for value in reversed(values) if value is not None), 0.0)


def _history(
    ask: Callable[[str], pa.Table], name: str, begin_ms: int, step_ms: int, count: int
) -> dict[str, list[int]]:
    """Return how many alerts there were at most in each step, by their state."""
    text = bind_parameters(
        HISTORY,
        {
            "begin_ns": begin_ms * NS_PER_MS,
            "step_ns": step_ms * NS_PER_MS,
            "begin": datetime.fromtimestamp(begin_ms / 1000, UTC),
            "end": datetime.fromtimestamp((begin_ms + count * step_ms) / 1000, UTC),
            "name": name,
        },
    )
    found = {"pending": [0] * count, "firing": [0] * count}
    rows = ask(text)
    for step, state, alerts in zip(*(column.to_pylist() for column in rows.columns), strict=True):
        if state in found and 0 <= step < count:
            found[state][step] = alerts
    return found
