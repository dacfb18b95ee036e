"""RulesConfig: alerts and recording rules."""

from __future__ import annotations

import re
from typing import Annotated
from urllib.parse import urlsplit

import msgspec

from frazil.errors import InvalidSetting
from frazil.model import doc, require_at_least

LABEL_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")
HOUR_MS = 3_600_000


class RulesConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of rules: which are evaluated how often, and who hears of alerts."""

    files: Annotated[
        list[str], doc("Rule files as Prometheus has them; patterns such as `rules/*.yml`.")
    ] = msgspec.field(default_factory=list)
    interval_ms: Annotated[int, doc("How often groups without an `interval` are evaluated.")] = (
        60_000
    )
    query_offset_ms: Annotated[
        int, doc("Queries of groups without a `query_offset` look back by this: for late data.")
    ] = 0
    timeout_ms: Annotated[int, doc("Time of the query of a rule.")] = 10_000
    rows_max: Annotated[int, doc("Rows that the query of a rule may return.")] = 10_000
    reload_interval_ms: Annotated[int, doc("How often files are checked for changes.")] = 10_000
    grace_ms: Annotated[
        int,
        doc("How long after a restart a longer `for` waits at least before its alert fires."),
    ] = 600_000
    outage_ms: Annotated[int, doc("After a longer stop, alerts begin their `for` anew.")] = HOUR_MS
    external_labels: Annotated[dict[str, str], doc("Labels added to each alert that is sent.")] = (
        msgspec.field(default_factory=dict)
    )
    external_url: Annotated[str, doc("Address of the web page, for links in notifications.")] = (
        "http://127.0.0.1:4320"
    )
    alertmanagers: Annotated[
        list[str], doc("Alertmanagers that receive all alerts: `http://alertmanager:9093`.")
    ] = msgspec.field(default_factory=list)
    webhooks: Annotated[
        list[str], doc("Addresses that receive a POST when an alert fires or is resolved.")
    ] = msgspec.field(default_factory=list)
    resend_delay_ms: Annotated[
        int, doc("How often a firing alert is sent again to Alertmanagers.")
    ] = 60_000
    queue_max: Annotated[int, doc("Notifications that may wait for one receiver.")] = 10_000
    watchdog: Annotated[
        bool,
        doc(
            "Fire the alert Watchdog all the time if there are receivers, so that they notice "
            "when it stops."
        ),
    ] = True

    def __post_init__(self) -> None:
        require_at_least(1000, "rules", self, ("interval_ms", "reload_interval_ms"))
        require_at_least(1, "rules", self, ("timeout_ms", "rows_max", "queue_max"))
        require_at_least(
            0, "rules", self, ("query_offset_ms", "grace_ms", "outage_ms", "resend_delay_ms")
        )
        for name in ("alertmanagers", "webhooks"):
            for url in getattr(self, name):
                check_url(url, f"rules.{name}")
        check_url(self.external_url, "rules.external_url")
        for label in self.external_labels:
            if LABEL_NAME.fullmatch(label) is None:
                raise InvalidSetting(
                    f"rules.external_labels has {label!r}; a label has letters, digits and _",
                    "rules.external_labels",
                )

    @property
    def has_receivers(self) -> bool:
        return bool(self.alertmanagers or self.webhooks)


def check_url(url: str, setting: str) -> None:
    """Raise `InvalidSetting` if it is not an address of a web server."""
    try:
        parts = urlsplit(url)
        is_valid = parts.scheme in ("http", "https") and bool(parts.hostname)
        _ = parts.port
    except ValueError:
        is_valid = False
    if not is_valid:
        raise InvalidSetting(f"{setting} has {url!r}; use http://host:port or https://…", setting)
