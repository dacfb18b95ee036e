"""Config: the settings of a node, one frozen struct per room, and the rules between rooms."""

from __future__ import annotations

from typing import Annotated

import msgspec

from frazil.errors import InvalidSetting
from frazil.model import doc
from frazil.settings import (
    HotConfig,
    IngestConfig,
    LakeConfig,
    LogConfig,
    QueryConfig,
    RedactRule,
    ServeConfig,
    retention_rules,
)

BATCH_OVERHEAD_BYTES = 1024
"""What the log adds to a request: a batch header, record fields and a digest."""


class Config(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of a node."""

    data: Annotated[str, doc("Data folder. All files of a node are in it.")] = "data"
    self_tracing: Annotated[
        bool, doc("Export spans of the node's own work, as the `OTEL_*` variables say.")
    ] = False
    retention: Annotated[
        dict[str, str],
        doc(
            "How long rows are kept, by table or by `table where condition`: hours, days or weeks. "
            "Rows without a rule are kept forever."
        ),
    ] = msgspec.field(default_factory=dict)
    redact: Annotated[
        tuple[RedactRule, ...],
        doc("Rules that hash, mask or drop values before they are stored. See docs/limits.md."),
    ] = ()
    log: LogConfig = msgspec.field(default_factory=LogConfig)
    ingest: IngestConfig = msgspec.field(default_factory=IngestConfig)
    hot: HotConfig = msgspec.field(default_factory=HotConfig)
    lake: LakeConfig = msgspec.field(default_factory=LakeConfig)
    query: QueryConfig = msgspec.field(default_factory=QueryConfig)
    serve: ServeConfig = msgspec.field(default_factory=ServeConfig)

    def __post_init__(self) -> None:
        if not self.data:
            raise InvalidSetting("data is empty; it must be a folder", "data")
        if retention_rules(self.retention) and not self.lake.enabled:
            raise InvalidSetting(
                "retention removes rows from the lake, which is off: set lake.enabled = true, or "
                "remove the rules",
                "retention",
                "lake.enabled",
            )
        if self.ingest.body_bytes_max + BATCH_OVERHEAD_BYTES > self.log.batch_bytes_max:
            raise InvalidSetting(
                f"ingest.body_bytes_max ({self.ingest.body_bytes_max}) does not fit into "
                f"log.batch_bytes_max ({self.log.batch_bytes_max}); lower the first or raise the "
                "second",
                "ingest.body_bytes_max",
                "log.batch_bytes_max",
            )
        for name in ("grpc_port", "http_port"):
            port = getattr(self.ingest, name)
            if self.serve.enabled and self.serve.http_port == port != 0:
                raise InvalidSetting(
                    f"serve.http_port and ingest.{name} are both {port}",
                    "serve.http_port",
                    f"ingest.{name}",
                )
