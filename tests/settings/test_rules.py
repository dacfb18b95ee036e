"""Settings of rules: what cannot work is refused when the node starts."""

from __future__ import annotations

import msgspec
import pytest

from frazil.config.secrets import redact
from frazil.errors import InvalidSetting
from frazil.settings import RulesConfig


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"alertmanagers": ["alertmanager:9093"]}, "rules.alertmanagers has 'alertmanager:9093'"),
        ({"webhooks": ["http://host:99999/"]}, "rules.webhooks has"),
        ({"external_url": "frazil.example"}, "rules.external_url has"),
        ({"external_labels": {"a-b": "c"}}, "a label has letters, digits and _"),
        ({"interval_ms": 10}, "rules.interval_ms"),
        ({"rows_max": 0}, "rules.rows_max"),
    ],
)
def test_what_cannot_work_is_refused(fields: dict[str, object], why: str) -> None:
    with pytest.raises((InvalidSetting, msgspec.ValidationError), match=why):
        RulesConfig(**fields)  # type: ignore[arg-type]


def test_receivers_are_alertmanagers_and_webhooks() -> None:
    assert not RulesConfig(files=["a.yml"]).has_receivers
    assert RulesConfig(webhooks=["https://user:password@host/path?key=1"]).has_receivers


def test_passwords_of_receivers_are_not_displayed() -> None:
    shown = redact(("rules", "webhooks"), ["https://user:pass@host/path?key=1", "http://host/"])
    assert shown == ["https://user:***@host/path?key=***", "http://host/"]
