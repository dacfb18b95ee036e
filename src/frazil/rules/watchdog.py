"""The group with the alert Watchdog, which fires all the time.

A receiver that expects it notices when this node, its queries or the way to the receiver fail.
"""

from __future__ import annotations

from frazil.rules.files.model import AlertRule, RuleGroup, RuleQuery

WATCHDOG = RuleGroup(
    file="(built in)",
    name="frazil",
    rules=(
        AlertRule(
            name="Watchdog",
            query=RuleQuery(language="sql", text="SELECT 1.0 AS value"),
            labels={"severity": "none"},
            annotations={
                "summary": "This alert always fires. If it stops, no other alert can be sent."
            },
        ),
    ),
)
