"""Prometheus' own tests of PromQL: every evaluation gives what Prometheus gives."""

from __future__ import annotations

import pytest

from tests.languages.promql.corpus import SCRIPTS, cases
from tests.languages.promql.judge import findings

EXPERIMENTAL = {
    ("native_histograms", "limit_ratio(1, metric)"): "chooses series by a hash of their labels",
}
"""What we refuse, with the reason."""

EVALUATIONS = 1773


@pytest.mark.parametrize("name", SCRIPTS)
def test_prometheus_agrees(name: str) -> None:
    """Scenario: a script of promqltest loads series and evaluates queries, each at one time, at the
    steps of a range, and at other times with `@` at all selectors. Guarantees: values, labels,
    order, warnings and errors are those the script expects."""
    wrong = {
        f"line {command.line}: {command.query}": finding
        for command, finding in findings(cases()[name])
        if finding and (name, command.query) not in EXPERIMENTAL
    }
    assert not wrong, "\n".join(f"{query}\n    {finding}" for query, finding in wrong.items())


def test_no_case_was_lost() -> None:
    """The stored cases are all there, and each exception is still one."""
    commands = [(name, each) for name, script in cases().items() for each in script]
    assert sum(each.name == "eval" for _, each in commands) == EVALUATIONS
    queries = {(name, each.query) for name, each in commands}
    assert set(EXPERIMENTAL) <= queries
