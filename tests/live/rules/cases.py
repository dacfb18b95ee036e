"""Rule files and series that Prometheus' promtool judges us by."""

# ruff: noqa: E501 lines of rule files

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass

RANDOM_COUNT = 40
STEPS = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleCase:
    """A rule file, and the series that it reads, one value a minute."""

    name: str
    rules: str
    series: Mapping[str, str]
    steps: int = STEPS


def rules(*texts: str) -> str:
    """One group of rules."""
    return "groups:\n- name: g\n  rules:\n" + "".join(
        "".join(f"  {line}\n" for line in text.strip().splitlines()) for text in texts
    )


CASES = (
    RuleCase(
        name="for, and resolved",
        rules=rules(
            """
- alert: High
  expr: load > 5
  for: 3m
  labels: {severity: page}
  annotations:
    summary: "{{ $labels.instance }} has {{ $value }}"
"""
        ),
        series={
            'load{instance="a", job="x"}': "1 9 9 9 9 9 1 1 9 9 1 9x10",
            'load{instance="b", job="x"}': "9x30",
        },
    ),
    RuleCase(
        name="keep_firing_for",
        rules=rules(
            """
- alert: High
  expr: load > 5
  for: 1m
  keep_firing_for: 4m
"""
        ),
        series={'load{a="1"}': "9 9 9 1 1 9 1 1 1 1 1 1 1 9 9 9 1 1 1 1 9x10"},
    ),
    RuleCase(
        name="absent series",
        rules=rules(
            """
- alert: Gone
  expr: absent(up{job="x"})
  for: 2m
- alert: Ended
  expr: up == 0 or absent_over_time(up[3m])
"""
        ),
        series={'up{job="x"}': "1 1 1 _x9 1 1 stale _x3 1 0 0 1x5"},
    ),
    RuleCase(
        name="a rule reads what one before has recorded",
        rules=rules(
            """
- record: job:load:sum
  expr: sum by (job) (load)
  labels: {kind: total}
- record: job:load:twice
  expr: job:load:sum * 2
- alert: Both
  expr: job:load:twice > 20
  labels: {kind: "{{ $labels.kind }}-{{ $labels.job }}"}
"""
        ),
        series={
            'load{instance="a", job="x"}': "1+1x20 _x9",
            'load{instance="b", job="x"}': "5x10 _x19",
            'load{instance="c", job="y"}': "_x5 20x3 stale _x20",
        },
    ),
    RuleCase(
        name="templates",
        rules=rules(
            r"""
- alert: Templates
  expr: load > 0
  labels:
    level: '{{ if gt $value 50.0 }}high{{ else if gt $value 10.0 }}middle{{ else }}low{{ end }}'
    host: '{{ $labels.instance | stripPort | toUpper }}'
  annotations:
    plain: "{{ $value }} {{ .Value }} {{ .Labels.instance }} {{ $labels.none }}|"
    sizes: "{{ $value | humanize }} {{ humanize1024 $value }} {{ humanizePercentage $value }}"
    time: "{{ humanizeDuration $value }} {{ humanizeTimestamp $value }}"
    printf: '{{ printf "%.3f %6.1f %e %g %v %s %q %-8s|" $value $value $value $value $value "a" "b" "c" }}'
    match: '{{ if match "^a" $labels.instance }}yes{{ end }} {{ reReplaceAll "([a-z]+):(.*)" "$2/$1" $labels.instance }}'
    words: '{{ title "ab cd" }} {{ toLower "AB" }} {{ len $labels.instance }} {{ eq 1 1 }} {{ and true false }}'
    spaces: "a   {{- 1 -}}   b {{/* comment */ -}} c"
    all: "{{ $labels }}"
"""
        ),
        series={
            'load{instance="a:9090"}': "0.00012 0.5 1 9.87654321 12.5 1234.5 1234567.891 1e9 2e9 3e-9",
            'load{instance="b.example.org:80"}': "60x3 3600x3 100000 1000000 86399 90061 123456",
        },
        steps=14,
    ),
    RuleCase(
        name="rates and histograms",
        rules=rules(
            """
- alert: Errors
  expr: sum by (job) (rate(requests_total{code="500"}[5m])) / sum by (job) (rate(requests_total[5m])) > 0.1
  for: 2m
  annotations: {share: "{{ $value | humanizePercentage }}"}
- alert: Slow
  expr: histogram_quantile(0.9, sum by (le) (rate(seconds_bucket[5m]))) > 0.5
"""
        ),
        series={
            'requests_total{code="200", job="x"}': "0+60x30",
            'requests_total{code="500", job="x"}': "0 0 0 0 0 0 10+10x12 130x12",
            'seconds_bucket{le="0.1"}': "0+10x10 100x20",
            'seconds_bucket{le="1"}': "0+10x10 100+10x20",
            'seconds_bucket{le="+Inf"}': "0+10x10 100+12x20",
        },
    ),
    RuleCase(
        name="labels of the group, a scalar, and names that are dropped",
        rules="""
groups:
- name: g
  labels: {team: web, severity: info}
  rules:
  - alert: Always
    expr: vector(1)
  - alert: Scalar
    expr: "3"
    labels: {severity: page}
    annotations: {value: "{{ $value }}"}
  - record: copied
    expr: load
- name: other
  rules:
  - alert: Same
    expr: load == 2
    labels: {instance: ""}
""",
        series={'load{instance="a"}': "1 2 2 3 2 _ _ 2 2 1x9"},
        steps=16,
    ),
    RuleCase(
        name="queries look back",
        rules="""
groups:
- name: g
  query_offset: 2m
  rules:
  - alert: Late
    expr: load > 5
    for: 2m
  - record: later
    expr: load
""",
        series={'load{a="1"}': "1 9 9 1 9 9 9 9 9 1 _x5 9x5 1x5"},
    ),
    RuleCase(
        name="above the limit",
        rules="""
groups:
- name: g
  limit: 2
  rules:
  - alert: Many
    expr: load > 5
""",
        series={f'load{{a="{name}"}}': "1 9 9 1 1 1" for name in "xy"},
        steps=8,
    ),
)


def random_case(rand: random.Random, number: int) -> RuleCase:
    """Series that come, go and end, under rules with random times."""

    def value() -> str:
        return rand.choices(["1", "9", "_", "stale"], [4, 6, 2, 0.5])[0]

    series = {
        f'load{{instance="{name}"}}': " ".join(value() for _ in range(STEPS)) for name in "abc"
    }
    wait, keep = rand.choice([0, 1, 2, 4, 7]), rand.choice([0, 0, 1, 3, 6])
    expr = rand.choice(
        [
            "load > 5",
            "load > bool 5",
            "max_over_time(load[3m]) > 5",
            "sum by (job) (load) > 10",
            'absent(load{instance="a"})',
            "count(load > 5) > 1",
            "recorded > 5",
        ]
    )
    return RuleCase(
        name=f"random {number}",
        rules=rules(
            f"""
- record: recorded
  expr: load{{instance!="c"}}
- alert: A
  expr: {expr}
  for: {wait}m
  keep_firing_for: {keep}m
  annotations: {{value: "{{{{ $value }}}}"}}
- alert: B
  expr: load > 5
  for: {rand.choice([0, 3])}m
"""
        ),
        series=series,
    )
