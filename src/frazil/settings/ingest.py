"""IngestConfig: settings of the OTLP receivers."""

from __future__ import annotations

import ipaddress
from typing import Annotated

import msgspec

from frazil.errors import InvalidSetting
from frazil.model import MiB, doc, require_at_least
from frazil.settings.limits import LimitsConfig

PORT_MAX = 65535


class IngestConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of the OTLP receivers. By default only this machine can connect."""

    host: Annotated[
        str,
        doc("Address to listen on, also for the API. A public one needs TLS and authentication."),
    ] = "127.0.0.1"
    grpc_port: Annotated[int, doc("Port of OTLP over gRPC. 0 picks a free port.")] = 4317
    http_port: Annotated[int, doc("Port of OTLP over HTTP. 0 picks a free port.")] = 4318
    body_bytes_max: Annotated[int, doc("Request body, as received and after decompression.")] = (
        20 * MiB
    )
    json_bytes_max: Annotated[
        int, doc("JSON body, which takes much longer to parse and many times its size in memory.")
    ] = 4 * MiB
    in_flight_bytes_max: Annotated[int, doc("Bodies of all requests in flight.")] = 128 * MiB
    requests_max: Annotated[int, doc("Requests served at the same time, both ports together.")] = (
        1024
    )
    connections_max: Annotated[int, doc("Open connections, per port.")] = 4096
    body_timeout_ms: Annotated[
        int, doc("Timeout from a request's headers to the end of its body.")
    ] = 30_000
    deduplicate: Annotated[
        bool, doc("Treat an identical body within `log.digest_window_ms` as a retry.")
    ] = True
    tls_certificate_file: Annotated[
        str | None, doc("Certificate chain of the server, in PEM. Turns TLS on.")
    ] = None
    tls_key_file: Annotated[
        str | None, doc("Private key of the certificate, in PEM, without a password.")
    ] = None
    tls_client_ca_file: Annotated[
        str | None, doc("Require a client certificate signed by one of these authorities.")
    ] = None
    token_file: Annotated[
        str | None, doc("Tokens, one per line; clients send `Authorization: Bearer <token>`.")
    ] = None
    insecure: Annotated[bool, doc("Accept any client, on any address, without TLS.")] = False
    cors_origins: Annotated[
        tuple[str, ...], doc("Web origins that may send from a browser; `*` matches any port.")
    ] = ("http://localhost:*", "http://127.0.0.1:*")
    redact_key_file: Annotated[
        str | None,
        doc("Key of the hashes of redacted values. By default one in the data folder, made once."),
    ] = None
    limits: LimitsConfig = msgspec.field(default_factory=LimitsConfig)

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            self._check(name, getattr(self, name))
        if self.grpc_port == self.http_port != 0:
            raise InvalidSetting(
                f"ingest.grpc_port and ingest.http_port are both {self.http_port}",
                "ingest.grpc_port",
                "ingest.http_port",
            )
        if self.in_flight_bytes_max < 2 * self.body_bytes_max:
            raise InvalidSetting(
                f"ingest.in_flight_bytes_max ({self.in_flight_bytes_max}) is less than twice "
                f"ingest.body_bytes_max ({self.body_bytes_max}): a large body could never be "
                "decompressed; raise the first or lower the second",
                "ingest.in_flight_bytes_max",
                "ingest.body_bytes_max",
            )
        check_reach(self)

    def _check(self, name: str, value: object) -> None:
        setting = f"ingest.{name}"
        if value == "":
            raise InvalidSetting(f"{setting} is empty; set it, or remove it", setting)
        if name.endswith("_port"):
            if not 0 <= self.__getattribute__(name) <= PORT_MAX:
                raise InvalidSetting(
                    f"{setting} is {value}; a port must be 0 to {PORT_MAX} (0 picks a free one)",
                    setting,
                )
        elif name == "cors_origins":
            for origin in self.cors_origins:
                _check_origin(origin)
        else:
            require_at_least(1, "ingest", self, (name,))


def check_reach(config: IngestConfig) -> None:
    """Reject settings that would admit anyone from the network, or TLS that is half configured.

    Only this machine reaches a loopback address. Any other address needs TLS, and tokens or client
    certificates, or `insecure`.
    """
    if (config.tls_certificate_file is None) != (config.tls_key_file is None):
        raise InvalidSetting(
            "ingest.tls_certificate_file and ingest.tls_key_file need each other; set both",
            "ingest.tls_certificate_file",
            "ingest.tls_key_file",
        )
    if config.tls_client_ca_file is not None and config.tls_certificate_file is None:
        raise InvalidSetting(
            "ingest.tls_client_ca_file requires client certificates, which need TLS; set "
            "ingest.tls_certificate_file and ingest.tls_key_file as well",
            "ingest.tls_client_ca_file",
        )
    if config.insecure or is_loopback(config.host):
        return
    if config.tls_certificate_file is None:
        raise InvalidSetting(
            f"ingest.host is {config.host}, which other machines can reach, and TLS is off; set "
            "ingest.tls_certificate_file and ingest.tls_key_file, listen on 127.0.0.1, or pass "
            "--insecure",
            "ingest.host",
        )
    if config.token_file is None and config.tls_client_ca_file is None:
        raise InvalidSetting(
            f"ingest.host is {config.host}, which other machines can reach, and clients are not "
            "authenticated; set ingest.token_file or ingest.tls_client_ca_file, or pass --insecure",
            "ingest.host",
        )


def is_loopback(host: str) -> bool:
    """Return whether only this machine reaches the address. Of names, only localhost counts."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _check_origin(origin: str) -> None:
    scheme, _, rest = origin.partition("://")
    if origin == "*":
        return
    if scheme not in ("http", "https") or not rest or "/" in rest or "*" in rest.split(":")[0]:
        raise InvalidSetting(
            f"ingest.cors_origins contains {origin!r}; an origin must be http://host or "
            "https://host, optionally with a port or :*, or * alone",
            "ingest.cors_origins",
        )
