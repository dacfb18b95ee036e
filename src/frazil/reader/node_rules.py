"""rules_of_node: the rules of a node, over its hot tier, SQL and log."""

from __future__ import annotations

from collections.abc import Iterable

from frazil.embedded import Embedded
from frazil.errors import Malformed
from frazil.model import Clock
from frazil.results import CancelToken, Limits
from frazil.rules import AppendableLog, RuleRunner, RuleSample, open_rules
from frazil.settings import RulesConfig


def rules_of_node(
    config: RulesConfig, log: AppendableLog, embedded: Embedded, *, clock: Clock
) -> RuleRunner | None:
    """Return the rules, not yet started; None if there are neither files nor receivers."""
    if not config.files and not config.has_receivers:
        return None

    def promql(
        text: str, at_ms: int, limits: Limits, cancel_token: CancelToken
    ) -> Iterable[RuleSample]:
        raise Malformed("expr is not supported yet; write the rule with sql")

    return open_rules(
        config,
        embedded.sql,
        log,
        embedded.tier.watermark,
        promql=promql,
        check_expr=lambda text: None,
        clock=clock,
    )
