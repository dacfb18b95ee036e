"""Config: one frozen struct per room, read from one TOML file. Unknown keys are refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

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
    log: LogConfig = msgspec.field(default_factory=LogConfig)
    ingest: IngestConfig = msgspec.field(default_factory=IngestConfig)
    hot: HotConfig = msgspec.field(default_factory=HotConfig)
    lake: LakeConfig = msgspec.field(default_factory=LakeConfig)
    query: QueryConfig = msgspec.field(default_factory=QueryConfig)
    serve: ServeConfig = msgspec.field(default_factory=ServeConfig)

    def __post_init__(self) -> None:
        if self.ingest.body_bytes_max + BATCH_OVERHEAD_BYTES > self.log.batch_bytes_max:
            raise Malformed(
                f"ingest.body_bytes_max ({self.ingest.body_bytes_max}) does not fit into "
                f"log.batch_bytes_max ({self.log.batch_bytes_max}); lower it or raise the other"
            )
        for name in ("grpc_port", "http_port"):
            port = getattr(self.ingest, name)
            if self.serve.enabled and self.serve.http_port == port != 0:
                raise Malformed(f"serve.http_port and ingest.{name} are both {port}")


def load(path: str | None, overrides: dict[str, Any]) -> Config:
    """Settings from a file, if one is named, with `overrides` on top of it."""
    settings: dict[str, Any] = {}
    if path is not None:
        try:
            settings = msgspec.toml.decode(Path(path).read_bytes())
        except OSError as error:
            raise Malformed(f"{path} cannot be read: {error.strerror}") from None
        except msgspec.DecodeError as error:
            raise Malformed(f"{path} is not TOML: {error}") from None
    try:
        return msgspec.convert(_merged(settings, overrides), Config)
    except msgspec.ValidationError as error:
        raise Malformed(str(error)) from None


def _merged(below: dict[str, Any], above: dict[str, Any]) -> dict[str, Any]:
    merged = dict(below)
    for name, value in above.items():
        under = merged.get(name)
        merged[name] = (
            _merged(under, value) if isinstance(under, dict) and isinstance(value, dict) else value
        )
    return merged
