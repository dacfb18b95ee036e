"""Rules evaluated by us and by promtool: `python -m tests.live.rules.compare [seed]`.

For each case our evaluator runs over series in memory, with time from the case. What it found, at
every evaluation, becomes the expectations of a promtool test file: the alerts that fire with their
labels and annotations, ALERTS and ALERTS_FOR_STATE with those that are pending, and what recording
rules stored. promtool evaluates the same rule files over the same series, and must agree.
"""

from __future__ import annotations

import json
import math
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from frazil.languages import evaluate_instant
from frazil.results import CancelToken
from frazil.rules import read_rule_file
from frazil.rules.files.model import AlertRule, RuleQuery
from frazil.rules.group_runner import GroupRunner, GroupSettings
from frazil.rules.promql_rows import check_promql, samples_of_answer
from frazil.rules.samples import METRIC_NAME, RuleSample
from frazil.rules.state.restore import StoredFor
from frazil.rules.template.evaluate import TemplateValues
from tests.languages.promql.memory import MemoryPoints
from tests.languages.promql.notation import STALE, Point, points_of, series_of
from tests.live.rules.cases import CASES, RANDOM_COUNT, RuleCase, random_case
from tests.live.rules.programs import PROMTOOL, built
from tests.sim.clock import SimClock

STEP_MS = 60_000
SEED = 24


@dataclass
class Memory:
    """Series of a case: those given, and those that rules stored. Evaluates and stores."""

    points: MemoryPoints = field(default_factory=MemoryPoints)
    recorded: set[str] = field(default_factory=set)

    def load(self, case: RuleCase) -> None:
        for name, values in case.series.items():
            labels, _ = series_of(name)
            times = range(0, 10**9, STEP_MS)
            self.points.add(labels, times, points_of(values))

    def run(self, query: RuleQuery, at_ms: int, cancel_token: CancelToken) -> Sequence[RuleSample]:
        answer = evaluate_instant(query.text, self.points, at_ms, cancel=cancel_token)
        return list(samples_of_answer(answer, at_ms))

    def over_time(
        self,
        query: RuleQuery,
        times_ms: Sequence[int],
        step_ms: int,
        cancel_token: CancelToken,
    ) -> Iterator[RuleSample]:
        for at_ms in times_ms:
            yield from self.run(query, at_ms, cancel_token)

    def store(self, samples: Sequence[RuleSample], *, is_read_next: bool) -> None:
        for sample in samples:
            self.recorded.add(dict(sample.labels)[METRIC_NAME])
            value = STALE if sample.value is None else sample.value
            self.points.add(sample.labels, [sample.time_ms], [Point(value)])


def evaluated(case: RuleCase) -> dict[str, Any]:
    """Return one test of promtool: what we found in a case."""
    memory = Memory()
    memory.load(case)
    settings = GroupSettings(
        interval_ms=STEP_MS,
        query_offset_ms=0,
        values=TemplateValues(labels={}, value=0.0),
    )
    file = read_rule_file("rules.yml", case.rules, check_promql)
    clock = SimClock()
    runners = [
        GroupRunner(group, settings, memory, memory, lambda _: StoredFor({}, 0), clock)
        for group in file.groups
    ]
    alerts: list[dict[str, Any]] = []
    for step in range(case.steps):
        for runner in runners:
            runner.step(step * STEP_MS, CancelToken())
        alerts += expected_alerts(runners, step)
    return {
        "name": case.name,
        "interval": "1m",
        "input_series": [
            {"series": name, "values": values} for name, values in case.series.items()
        ],
        "alert_rule_test": alerts,
        "promql_expr_test": [
            expectation
            for step in range(case.steps)
            for name in sorted({*memory.recorded, "ALERTS", "ALERTS_FOR_STATE"})
            for expectation in expected_series(memory, name, step)
        ],
    }


def expected_alerts(runners: Sequence[GroupRunner], step: int) -> Iterator[dict[str, Any]]:
    """Yield what fires of each rule. Rules of one name are one to promtool."""
    for runner in runners:
        for name in sorted({r.name for r in runner.group.rules if isinstance(r, AlertRule)}):
            firing = [
                alert
                for alert in runner.alerts
                if alert.phase == "firing" and dict(alert.labels)["alertname"] == name
            ]
            yield {
                "eval_time": f"{step}m",
                "alertname": name,
                "exp_alerts": [
                    {
                        "exp_labels": {k: v for k, v in alert.labels if k != "alertname"},
                        "exp_annotations": dict(alert.annotations),
                    }
                    for alert in firing
                ],
            }


def expected_series(memory: Memory, name: str, step: int) -> Iterator[dict[str, Any]]:
    """Yield the samples of a stored series at a time."""
    answer = evaluate_instant(name, memory.points, step * STEP_MS)
    samples = list(samples_of_answer(answer, step * STEP_MS))
    if any(sample.value is None or not math.isfinite(sample.value) for sample in samples):
        return
    yield {
        "expr": name,
        "eval_time": f"{step}m",
        "exp_samples": [
            {"labels": labels_text(sample), "value": sample.value} for sample in samples
        ],
    }


def labels_text(sample: RuleSample) -> str:
    labels = dict(sample.labels)
    name = labels.pop(METRIC_NAME, "")
    pairs = ", ".join(f"{key}={json.dumps(value)}" for key, value in labels.items())
    return f"{name}{{{pairs}}}"


def judged(cases: Sequence[RuleCase]) -> tuple[int, str]:
    """Return how many expectations there were, and what promtool says of them; empty if it
    agrees."""
    promtool = built(PROMTOOL)
    count, said = 0, []
    with tempfile.TemporaryDirectory() as folder:
        for number, case in enumerate(cases):
            test = evaluated(case)
            count += len(test["alert_rule_test"]) + len(test["promql_expr_test"])
            rules = Path(folder) / f"rules{number}.yml"
            rules.write_text(case.rules)
            document = {
                "rule_files": [rules.name],
                "evaluation_interval": "1m",
                "tests": [test],
            }
            path = Path(folder) / f"test{number}.yml"
            path.write_text(yaml.safe_dump(document, sort_keys=False))
            found = subprocess.run(
                [promtool, "test", "rules", path], capture_output=True, text=True, check=False
            )
            if found.returncode != 0:
                said.append(f"{case.name}:\n{found.stdout}{found.stderr}")
    return count, "\n".join(said)


def main() -> int:
    seed = int(sys.argv[1]) if len(sys.argv) > 1 else SEED
    rand = random.Random(seed)
    cases = [*CASES, *(random_case(rand, number) for number in range(RANDOM_COUNT))]
    count, said = judged(cases)
    print(said)
    verdict = "differ" if said else "agree"
    print(f"{len(cases)} cases, {count} expectations, seed {seed}: Frazil and promtool {verdict}")
    return 1 if said else 0


if __name__ == "__main__":
    sys.exit(main())
