"""JaegerConfig: settings of the port on which a Jaeger reads traces."""

from __future__ import annotations

from typing import Annotated

import msgspec

from frazil.errors import InvalidSetting
from frazil.model import doc, require_at_least

PORT_MAX = 65535


class JaegerConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Port of Jaeger's remote storage, from which a Jaeger reads traces. Certificate and tokens are
    those of the API."""

    enabled: Annotated[bool, doc("Open the port.")] = False
    host: Annotated[str | None, doc("Address to listen on. Default: that of `ingest.host`.")] = None
    port: Annotated[int, doc("Port to listen on. 0 picks a free port.")] = 17271
    calls_max: Annotated[int, doc("Calls at the same time, streams that are read included.")] = 64

    def __post_init__(self) -> None:
        require_at_least(1, "jaeger", self, ["calls_max"])
        if not 0 <= self.port <= PORT_MAX:
            raise InvalidSetting(
                f"jaeger.port is {self.port}; a port must be 0 to {PORT_MAX} (0 picks a free one)",
                "jaeger.port",
            )
        if self.host == "":
            raise InvalidSetting("jaeger.host is empty; set it, or remove it", "jaeger.host")
