"""Config: the settings of a node, one frozen struct per room, and the rules between rooms."""

from __future__ import annotations

import msgspec

from frazil.errors import Malformed
from frazil.hot import HotConfig
from frazil.ingest import IngestConfig
from frazil.lake import LakeConfig
from frazil.log import LogConfig
from frazil.query import QueryConfig
from frazil.serve import ServeConfig

BATCH_OVERHEAD_BYTES = 1024
"""What the log adds to a request: a batch header, a record's fields and its digest."""


class Config(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of a node."""

    data: str = "data"
    """The folder in which everything is kept."""
    log: LogConfig = msgspec.field(default_factory=LogConfig)
    ingest: IngestConfig = msgspec.field(default_factory=IngestConfig)
    hot: HotConfig = msgspec.field(default_factory=HotConfig)
    lake: LakeConfig = msgspec.field(default_factory=LakeConfig)
    query: QueryConfig = msgspec.field(default_factory=QueryConfig)
    serve: ServeConfig = msgspec.field(default_factory=ServeConfig)

    def __post_init__(self) -> None:
        if not self.data:
            raise Malformed("data is empty; it must name a folder")
        if self.ingest.body_bytes_max + BATCH_OVERHEAD_BYTES > self.log.batch_bytes_max:
            raise Malformed(
                f"ingest.body_bytes_max ({self.ingest.body_bytes_max}) does not fit into "
                f"log.batch_bytes_max ({self.log.batch_bytes_max}); lower it or raise the other"
            )
        for name in ("grpc_port", "http_port"):
            port = getattr(self.ingest, name)
            if self.serve.enabled and self.serve.http_port == port != 0:
                raise Malformed(f"serve.http_port and ingest.{name} are both {port}")
