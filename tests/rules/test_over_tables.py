"""Rules over real tables: through the log, over the API, to a webhook, and across a restart."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

from tests.rules.receiver import receiver
from tests.serve.served import Served, fill, get, served

WAIT_S = 120
"""Each wait follows a condition; this only bounds a failing test, also on a busy machine."""
FIRING = ("FromPromql", "Nothing", "Patient", "Recorded")
"""With Patient, which is pending."""
RULES = """
groups:
  - name: shop
    interval: 1s
    rules:
      - record: log_rows
        sql: SELECT body_type AS kind, count(*) AS value FROM logs WHERE time <= $time GROUP BY 1
        labels: {job: shop/api}
      - alert: Recorded
        sql: >
          SELECT attributes['kind'] AS kind, max(value_double) AS value FROM metrics
          WHERE metric_name = 'log_rows' AND service_name = 'api' AND time <= $time
          GROUP BY 1 HAVING max(value_double) > 2
        annotations:
          summary: "{{ $value }} of {{ $labels.kind }}"
      - alert: FromPromql
        expr: log_rows{job="shop/api"} * 2 > 5
        labels: {kind_of: '{{ $labels.kind }}'}
      - alert: Nothing
        expr: absent(never_sent{job="x"})
      - alert: Patient
        sql: SELECT 1 AS value
        for: 1h
      - alert: Broken
        sql: SELECT 1 AS value FROM nowhere
"""


def until(look: Callable[[], Any]) -> Any:
    """Look until there is something."""
    end = time.monotonic() + WAIT_S
    while time.monotonic() < end:
        found = look()
        if found:
            return found
        time.sleep(0.05)
    raise AssertionError("it did not happen")


def rules_of(there: Served) -> dict[str, Any]:
    groups = get(there, "alerts")["report"]["groups"]
    return {rule["name"]: rule for group in groups for rule in group["rules"]}


def is_evaluated(there: Served) -> bool:
    rules = rules_of(there)
    return bool(rules) and rules["Recorded"]["state"] == "firing"


def has_waited(there: Served) -> Any:
    """The alert that is pending, once it was evaluated several times."""
    rule = rules_of(there)["Patient"]
    (alert,) = rule["alerts"]
    return rule["evaluated_at_ms"] - alert["active_at_ms"] >= 2000 and alert


def test_rules_over_tables(tmp_path: Path) -> None:
    (tmp_path / "shop.yml").write_text(RULES)
    with receiver() as hook:
        settings = {
            "files": [str(tmp_path / "*.yml")],
            "webhooks": [f"{hook.url}/secret"],
            "external_labels": {"region": "eu"},
            "watchdog": False,
        }
        with served(tmp_path / "data", rules=settings) as there:
            fill(there, 3)
            until(lambda: is_evaluated(there))
            rules = rules_of(there)
            (alert,) = rules["Recorded"]["alerts"]
            assert alert["labels"] == {"alertname": "Recorded", "kind": "string"}
            assert alert["annotations"] == {"summary": "3 of string"}
            until(lambda: rules_of(there)["FromPromql"]["state"] == "firing")
            (alert,) = rules_of(there)["FromPromql"]["alerts"]
            assert alert["value"] == "6"
            assert alert["labels"] == {
                "alertname": "FromPromql",
                "job": "shop/api",
                "kind": "string",
                "kind_of": "string",
            }
            (alert,) = rules_of(there)["Nothing"]["alerts"]
            assert alert["labels"] == {"alertname": "Nothing", "job": "x"}
            said = there.ask("GET", "/prometheus/api/v1/alerts").json["data"]["alerts"]
            assert {each["labels"]["alertname"] for each in said} >= {"FromPromql", "Patient"}
            said = there.ask("GET", "/prometheus/api/v1/rules?type=record").json["data"]["groups"]
            assert [rule["name"] for rule in said[0]["rules"]] == ["log_rows"]
            firing = 'ALERTS{alertstate="firing",alertname="FromPromql"}'
            said = there.ask("GET", f"/prometheus/api/v1/query?query={quote(firing)}").json
            (series,) = said["data"]["result"]
            assert series["metric"]["job"] == "shop/api"
            chart = get(there, "alerts/chart", group="shop", rule="Recorded", since="10s")
            assert [line["labels"] for line in chart["lines"]] == [{"kind": "string"}]
            assert chart["lines"][0]["values"][-1] == 3.0
            assert max(chart["firing"]) == 1
            assert max(chart["pending"]) == 0
            chart = get(there, "alerts/chart", group="shop", rule="FromPromql", since="10s")
            assert chart["lines"][0]["values"][-1] == 6.0
            assert there.ask("GET", "/api/v1/alerts/chart?group=shop&rule=None").status == 404
            assert rules["Broken"]["health"] == "err"
            assert "nowhere" in rules["Broken"]["last_error"]
            hook.wait_for(1)
            said = [each for _, body in hook.taken for each in body["alerts"]]
            assert {(each["labels"]["region"], each["status"]) for each in said} == {
                ("eu", "firing")
            }
            names = [each["labels"]["alertname"] for each in said]
            assert len(names) == len(set(names)), "a webhook hears of changes only"
            (notifier,) = get(there, "alerts")["report"]["notifiers"]
            assert notifier["url"] == hook.url
            stored = there.embedded.sql(
                "SELECT DISTINCT metric_name, attributes['alertname'] FROM metrics "
                "WHERE scope_name = 'frazil.rules' ORDER BY 1, 2"
            ).fetchall()
            assert stored == [
                *(("ALERTS", name) for name in FIRING),
                *(("ALERTS_FOR_STATE", name) for name in FIRING),
                ("log_rows", None),
            ]
            patient = until(lambda: has_waited(there))
            assert patient["state"] == "pending"
        with served(tmp_path / "data", rules=settings) as there:
            until(lambda: is_evaluated(there))
            (again,) = rules_of(there)["Patient"]["alerts"]
            changes = get(there, "alerts")["report"]["changes"]
            (first_ms,) = (each["at_ms"] for each in changes if each["rule"] == "Patient")
            assert first_ms - again["active_at_ms"] >= 1000, "it has waited before the restart"
            assert again["active_at_ms"] >= patient["active_at_ms"] - 1000
