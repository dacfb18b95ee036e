"""Settings of the metrics that Kafka clients push."""

from __future__ import annotations

from typing import Any

import pytest

from frazil.errors import InvalidSetting
from frazil.settings import ClientTelemetryConfig


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"interval_ms": 99}, "interval_ms"),
        ({"interval_ms": 3_600_001}, "interval_ms"),
        ({"metrics": ("",)}, "metrics"),
        ({"metrics": ("x" * 201,)}, "metrics"),
        ({"bytes_max": 0}, "bytes_max"),
        ({"clients_max": 0}, "clients_max"),
    ],
)
def test_invalid_settings_are_named(settings: dict[str, Any], named: str) -> None:
    with pytest.raises(InvalidSetting, match=f"kafka.telemetry.{named}"):
        ClientTelemetryConfig(**settings)


def test_nothing_is_asked_of_clients_by_default() -> None:
    assert ClientTelemetryConfig().metrics == ()
