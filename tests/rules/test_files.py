"""Rule files: what is read, and what is said of those that are wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from frazil.errors import Malformed
from frazil.rules import read_rule_file
from frazil.rules.durations import duration_text, parse_duration
from frazil.rules.files.model import AlertRule, RecordingRule
from frazil.rules.files.sources import RuleFiles

FILE = """
groups:
  - name: shop
    interval: 30s
    query_offset: 1m
    limit: 5
    labels: {team: web}
    rules:
      - record: job:errors:rate5m
        expr: |
          sum by (job) (rate(errors_total[5m]))
        labels:
          tier: 1
      - alert: Slow
        sql: >
          SELECT service_name, avg(duration_nano) AS value FROM spans
          WHERE time > $time - INTERVAL '5 minutes' GROUP BY 1;
        for: 1h30m
        keep_firing_for: 5m
        labels: {severity: page}
        annotations:
          summary: "{{ $labels.service_name }}: {{ $value | humanize }}"
  - name: nothing
"""


def refuse_nonsense(text: str) -> None:
    if "nonsense" in text:
        raise Malformed("unexpected nonsense")


def test_a_file_is_read() -> None:
    shop, nothing = read_rule_file("/etc/shop.yml", FILE, refuse_nonsense).groups
    assert (shop.name, shop.interval_ms, shop.query_offset_ms) == ("shop", 30_000, 60_000)
    assert (shop.limit, shop.labels, nothing.rules) == (5, {"team": "web"}, ())
    record, alert = shop.rules
    assert isinstance(record, RecordingRule)
    assert record.labels == {"tier": "1"}
    assert record.query.text == "sum by (job) (rate(errors_total[5m]))\n"
    assert isinstance(alert, AlertRule)
    assert (alert.for_ms, alert.keep_firing_for_ms) == (5_400_000, 300_000)
    assert alert.query.language == "sql"


def rule(text: str) -> str:
    return f"groups:\n- name: g\n  rules:\n  - {text}\n"


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("groups: [", "f.yml: it is not YAML: line 1"),
        ("groups:\n- name: a\n- name: a", "f.yml: the group a occurs twice"),
        ("groups:\n- rules: []", "f.yml: group 1: name is missing"),
        ("groups:\n- name: a\n  name: b", "line 3: the key name occurs twice"),
        ("groups:\n- name: a\n  every: 5m", "group 1: every (line 3) is not known here"),
        ("groups:\n- name: a\n  interval: 5 m", "interval: '5 m' is not a duration"),
        ("groups:\n- name: a\n  limit: -1", "limit is '-1'; it must be a whole number"),
        ("group:\n- name: a", "group (line 2) is not known here; use groups"),
        (rule("{expr: a}"), "group g: rule 1 (line 4): a rule has either alert or record"),
        (rule("{alert: a, record: b, expr: c}"), "either alert or record"),
        (rule("{alert: a}"), "group g: rule a (line 4): a rule has either expr, in PromQL, or sql"),
        (rule("{alert: a, expr: nonsense}"), "rule a (line 4): expr: unexpected nonsense"),
        (rule("{alert: a, sql: 'SELECT 1; SELECT 2'}"), "sql must be one query"),
        (rule("{alert: a, sql: SELECT $x}"), "sql: $x at"),
        (rule("{record: a-b, expr: c}"), "'a-b' cannot be the name of a series"),
        (rule("{record: a, expr: c, for: 5m}"), "for (line 4) is not known here"),
        (rule("{alert: a, expr: c, labels: {alertname: x}}"), "'alertname' cannot be a name"),
        (rule("{alert: a, expr: c, labels: {x: {y: z}}}"), "labels: x (line 4) must be a text"),
        (
            rule("{alert: a, expr: c, annotations: {x: '{{ $foo }}'}}"),
            "annotation x: $foo is not known in templates",
        ),
        (rule("{alert: a, expr: c, labels: {x: '{{ query \"up\" }}'}}"), "they run no queries"),
    ],
)
def test_an_error_says_where_it_is(text: str, wanted: str) -> None:
    with pytest.raises(Malformed) as caught:
        read_rule_file("/etc/f.yml", text, refuse_nonsense)
    assert wanted in str(caught.value)


def test_durations_are_prometheus() -> None:
    assert [parse_duration(text) for text in ("0", "1y2w3d4h5m6s7ms", "90m")] == [
        0,
        ((365 + 14 + 3) * 24 * 3600 + 4 * 3600 + 5 * 60 + 6) * 1000 + 7,
        5_400_000,
    ]
    assert [duration_text(ms) for ms in (0, 5_400_000, 86_400_000, 90_061_000)] == [
        *("0s", "1h30m", "1d", "25h1m1s"),
    ]
    for wrong in ("", "5", "m", "5m1h", "1.5h", "-5m", "9999999y"):
        with pytest.raises(Malformed):
            parse_duration(wrong)


def test_files_are_read_again_when_they_change(tmp_path: Path) -> None:
    files = RuleFiles([str(tmp_path / "*.yml")], refuse_nonsense)
    assert files.read_if_changed() == ()
    one = tmp_path / "one.yml"
    one.write_text(FILE)
    groups = files.read_if_changed()
    assert groups is not None
    assert [group.name for group in groups] == ["shop", "nothing"]
    assert files.read_if_changed() is None
    one.write_text("groups: 5")
    with pytest.raises(Malformed, match=r"one.yml: groups .* must be a list"):
        files.read_if_changed()
    one.write_text(FILE)
    assert files.read_if_changed() == groups
    missing = RuleFiles([str(tmp_path / "two.yml")], refuse_nonsense)
    with pytest.raises(Malformed, match=r"two.yml, which does not exist"):
        missing.read_if_changed()
