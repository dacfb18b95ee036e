"""RetentionRule: how long the rows of a table, or those that meet a condition, are kept.

    [retention]
    logs = "30d"
    "spans where service_name = 'x'" = "7d"

The condition is SQL. It is checked against the columns of the table when the lake opens, because
this module loads no query engine.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from frazil.errors import InvalidSetting
from frazil.model import Signal

KEY = re.compile(r"\s*([a-z][a-z0-9_-]*)\s*(?:\swhere\s+(.*\S))?\s*", re.DOTALL | re.IGNORECASE)
AGE = re.compile(r"\s*(\d{1,6})\s*([hdw])\s*")
HOUR_MS = 3_600_000
UNITS_MS = {"h": HOUR_MS, "d": 24 * HOUR_MS, "w": 7 * 24 * HOUR_MS}
DEAD_LETTERS = "dead_letters"
TABLES = (*(signal.table for signal in Signal), DEAD_LETTERS)
TOPIC_PREFIX = "topic_"
"""Tables of other topics begin with it."""
RULES_MAX = 100
"""Each condition is evaluated for each row of the files that it may concern."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RetentionRule:
    """One rule. Rows that meet the condition of any rule follow the longest of these rules; the
    others follow the rule of their table."""

    table: str
    where: str | None
    """SQL condition; None for the rule of the table."""
    age_ms: int

    @property
    def name(self) -> str:
        """As it is written in the settings."""
        return self.table if self.where is None else f"{self.table} where {self.where}"


def retention_rules(settings: Mapping[str, str]) -> tuple[RetentionRule, ...]:
    """Parse the settings. Raises `InvalidSetting`; conditions are not checked here."""
    if len(settings) > RULES_MAX:
        raise InvalidSetting(
            f"retention has {len(settings)} rules; at most {RULES_MAX} are allowed", "retention"
        )
    rules: dict[str, RetentionRule] = {}
    for key, text in settings.items():
        rule = _rule_of(key, text)
        if rule.name in rules:
            raise InvalidSetting(
                f"retention has two rules for {rule.name!r}; remove one", f"retention.{key}"
            )
        rules[rule.name] = rule
    return tuple(rules.values())


def _rule_of(key: str, text: str) -> RetentionRule:
    setting = f"retention.{key}"
    match = KEY.fullmatch(key)
    if match is None:
        raise InvalidSetting(
            f"retention has a rule for {key!r}; write a table, such as logs, or a table and a "
            "condition, such as \"spans where service_name = 'x'\"",
            setting,
        )
    # Names of environment variables have hyphens in place of underscores.
    table = match[1].lower().replace("-", "_")
    if table not in TABLES and not table.startswith(TOPIC_PREFIX):
        raise InvalidSetting(
            f"retention has a rule for {table}, which is not a table; tables are "
            f"{', '.join(TABLES)}, and {TOPIC_PREFIX}… for other topics",
            setting,
        )
    age = AGE.fullmatch(text)
    if age is None or int(age[1]) == 0:
        raise InvalidSetting(
            f"{setting} is {text!r}; it must be a number of hours, days or weeks, such as "
            '"36h", "30d" or "52w"',
            setting,
        )
    return RetentionRule(table=table, where=match[2], age_ms=int(age[1]) * UNITS_MS[age[2]])
