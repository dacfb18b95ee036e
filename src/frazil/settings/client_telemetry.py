"""ClientTelemetryConfig: settings of the metrics that Kafka clients push."""

from __future__ import annotations

from typing import Annotated

import msgspec

from frazil.errors import InvalidSetting
from frazil.model import MiB, doc, require_at_least

INTERVAL_MS_MIN, INTERVAL_MS_MAX = 100, 3_600_000
"""Those of Kafka."""
NAME_BYTES_MAX = 200


class ClientTelemetryConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Metrics of Kafka clients (KIP-714), which they push into the table `metrics`."""

    metrics: Annotated[
        tuple[str, ...],
        doc('Prefixes of the names of metrics that clients push. `["*"]`: all; none: no client.'),
    ] = ()
    interval_ms: Annotated[int, doc("How often a client pushes.")] = 300_000
    bytes_max: Annotated[int, doc("Metrics in one push, as received and after decompression.")] = (
        MiB
    )
    clients_max: Annotated[int, doc("Clients that push. Others are told to try again later.")] = (
        10_000
    )

    def __post_init__(self) -> None:
        require_at_least(1, "kafka.telemetry", self, ("interval_ms", "bytes_max", "clients_max"))
        if not INTERVAL_MS_MIN <= self.interval_ms <= INTERVAL_MS_MAX:
            raise InvalidSetting(
                f"kafka.telemetry.interval_ms is {self.interval_ms}; it must be "
                f"{INTERVAL_MS_MIN} to {INTERVAL_MS_MAX}",
                "kafka.telemetry.interval_ms",
            )
        for name in self.metrics:
            if not 1 <= len(name.encode()) <= NAME_BYTES_MAX:
                raise InvalidSetting(
                    f"kafka.telemetry.metrics contains {name!r}; a prefix has 1 to "
                    f'{NAME_BYTES_MAX} bytes, and "*" stands for all metrics',
                    "kafka.telemetry.metrics",
                )
