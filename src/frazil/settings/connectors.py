"""ConnectorsConfig: limits of connectors."""

from __future__ import annotations

from typing import Annotated

import msgspec

from frazil.errors import InvalidSetting
from frazil.model import MiB, doc, require_at_least


class ConnectorsConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of connectors: sources and sinks, each a process of its own."""

    count_max: Annotated[int, doc("Sources and sinks together.")] = 32
    memory_bytes_max: Annotated[int, doc("Address space of the process of one connector.")] = (
        2048 * MiB
    )
    in_flight_bytes_max: Annotated[
        int, doc("Bytes of one source that wait for the log, or of one sink for the other side.")
    ] = 4 * MiB
    silence_ms_max: Annotated[
        int, doc("A connector that does not respond for this long is killed and started again.")
    ] = 120_000
    backoff_ms: Annotated[
        int, doc("Pause before a connector is started again; doubled each time it fails.")
    ] = 1_000
    backoff_ms_max: Annotated[int, doc("The longest pause.")] = 60_000

    def __post_init__(self) -> None:
        require_at_least(1, "connectors", self, ("count_max", "backoff_ms"))
        require_at_least(64 * MiB, "connectors", self, ("memory_bytes_max",))
        require_at_least(1024, "connectors", self, ("in_flight_bytes_max",))
        require_at_least(1_000, "connectors", self, ("silence_ms_max",))
        if self.backoff_ms_max < self.backoff_ms:
            raise InvalidSetting(
                f"connectors.backoff_ms_max ({self.backoff_ms_max}) is below connectors.backoff_ms "
                f"({self.backoff_ms})",
                "connectors.backoff_ms_max",
                "connectors.backoff_ms",
            )
