"""ServeConfig: settings of the HTTP API."""

from __future__ import annotations

from typing import Annotated

import msgspec

from frazil.errors import InvalidSetting
from frazil.model import MiB, doc, require_at_least

PORT_MAX = 65535


class ServeConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of the HTTP API. It listens on `ingest.host`, with the certificate and the CORS
    origins of `ingest`."""

    enabled: Annotated[
        bool, doc("Serve the HTTP API and the web page. If off, nothing can query a running node.")
    ] = True
    http_port: Annotated[int, doc("Port of the API. 0 picks a free port.")] = 4320
    token_file: Annotated[
        str | None,
        doc("Tokens that may read, one per line. Default: those of `ingest.token_file`."),
    ] = None
    statements_token_file: Annotated[
        str | None,
        doc(
            "Tokens that may send statements (CREATE, COPY, DROP), one per line; they may read as "
            "well. Default: whoever may read, if `ingest.host` is a loopback address; otherwise no "
            "one."
        ),
    ] = None
    answer_bytes_max: Annotated[
        int, doc("Response built as a whole, such as rows in JSON. Arrow and CSV are streamed.")
    ] = 64 * MiB
    body_bytes_max: Annotated[
        int, doc("Request body. The SQL in it is limited by `query.text_bytes_max`.")
    ] = MiB
    rows_bytes_max: Annotated[int, doc("Request body with rows of a keyed table.")] = 8 * MiB
    requests_max: Annotated[
        int, doc("Requests served at the same time, not counting live tails.")
    ] = 64
    tails_max: Annotated[
        int, doc("Live tails at the same time. Those with the same filters share their work.")
    ] = 128
    connections_max: Annotated[int, doc("Open connections.")] = 512

    def __post_init__(self) -> None:
        for name in ("token_file", "statements_token_file"):
            if getattr(self, name) == "":
                raise InvalidSetting(
                    f"serve.{name} is empty; set it to a file, or remove it", f"serve.{name}"
                )
        if not 0 <= self.http_port <= PORT_MAX:
            raise InvalidSetting(
                f"serve.http_port is {self.http_port}; a port must be 0 to {PORT_MAX} (0 picks a "
                "free one)",
                "serve.http_port",
            )
        require_at_least(
            1, "serve", self, (name for name in self.__struct_fields__ if name != "http_port")
        )
