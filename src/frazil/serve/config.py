"""ServeConfig: what an operator may set for the HTTP API."""

from __future__ import annotations

import msgspec

from frazil.errors import Malformed
from frazil.model import MiB

PORT_MAX = 65535


class ServeConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of the HTTP API. It listens where OTLP listens (`ingest.host`), with the same
    certificate and for the same pages."""

    enabled: bool = True
    """Without, nobody can ask a running node, or see how it is."""
    http_port: int = 4320
    """The port of the API. 0 is any free port."""
    token_file: str | None = None
    """Tokens of those who may read, one per line. Without it, those of `ingest.token_file`."""
    answer_bytes_max: int = 64 * MiB
    """An answer that is made as a whole, such as rows in JSON. Arrow and CSV are streams."""
    body_bytes_max: int = MiB
    """A request's body; the SQL in it is bounded by `query.text_bytes_max`."""
    requests_max: int = 64
    """Requests that are being served at the same time, live tails aside."""
    tails_max: int = 32
    """Live tails at the same time."""
    connections_max: int = 512
    """Open connections."""

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            value = getattr(self, name)
            if value == "":
                raise Malformed(f"serve.{name} is empty; set it, or leave it out")
            if name == "http_port":
                if not 0 <= value <= PORT_MAX:
                    raise Malformed(f"serve.{name} is {value}; a port is 0 (any) to {PORT_MAX}")
            elif isinstance(value, int) and not isinstance(value, bool) and value < 1:
                raise Malformed(f"serve.{name} is {value}; it must be at least 1")
