"""rules_of_node: the rules of a node, over its hot tier, SQL and log."""

from __future__ import annotations

from frazil.config import Config
from frazil.embedded import Embedded
from frazil.model import Clock
from frazil.rules import AppendableLog, RuleRunner, open_rules


def rules_of_node(
    config: Config, log: AppendableLog, embedded: Embedded, *, clock: Clock
) -> RuleRunner | None:
    """Return the rules, not yet started; None if there are neither files nor receivers."""
    if not config.rules.files and not config.rules.has_receivers:
        return None
    return open_rules(
        config.rules,
        embedded.sql,
        log,
        embedded.tier.watermark,
        bytes_max=config.serve.answer_bytes_max,
        clock=clock,
    )
