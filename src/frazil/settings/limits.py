"""LimitsConfig: limits on the records of a request."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from frazil.errors import InvalidSetting
from frazil.model import KiB, MiB, doc, require_at_least

TEXT_BYTES_MIN = 64
"""A hash of a redacted value is shorter. Below this, limits would be checked for every text."""


class LimitsConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Limits on the records of a request. 0 turns a limit off. See docs/limits.md."""

    attributes_max: Annotated[
        int, doc("Attributes of one resource, scope, span, event, link, log record or data point.")
    ] = 1024
    key_bytes_max: Annotated[int, doc("Key of an attribute.")] = 1 * KiB
    value_bytes_max: Annotated[
        int, doc("Value of an attribute; of an array or map each text in it.")
    ] = 1 * MiB
    log_body_bytes_max: Annotated[int, doc("Body of a log record.")] = 1 * MiB
    when_exceeded: Annotated[
        Literal["truncate", "reject"],
        doc("Cut what exceeds a limit, or reject the record. Data points are always rejected."),
    ] = "truncate"
    series_per_service_max: Annotated[
        int, doc("Metric series of one service within an hour; data points of others are rejected.")
    ] = 0

    def __post_init__(self) -> None:
        require_at_least(0, "ingest.limits", self)
        for name in ("key_bytes_max", "value_bytes_max", "log_body_bytes_max"):
            if 0 < getattr(self, name) < TEXT_BYTES_MIN:
                setting = f"ingest.limits.{name}"
                raise InvalidSetting(
                    f"{setting} is {getattr(self, name)}; it must be at least {TEXT_BYTES_MIN}, or "
                    "0 for no limit",
                    setting,
                )
