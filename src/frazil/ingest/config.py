"""What an operator may set for OTLP. Unknown keys and contradicting values are refused."""

from __future__ import annotations

import ipaddress

import msgspec

from frazil.errors import Malformed
from frazil.model import MiB

PORT_MAX = 65535


class IngestConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of the OTLP receivers. By default only this machine can connect."""

    host: str = "127.0.0.1"
    """Address to listen on, also for the API. One that other machines reach needs protection."""
    grpc_port: int = 4317
    """OTLP over gRPC. 0 is any free port."""
    http_port: int = 4318
    """OTLP over HTTP. 0 is any free port."""
    body_bytes_max: int = 20 * MiB
    """A request's body, as it arrives and again once it is decompressed."""
    json_bytes_max: int = 4 * MiB
    """The same for a body in JSON, which takes much longer to read, and many times its memory."""
    in_flight_bytes_max: int = 128 * MiB
    """All bodies that have arrived and are not answered yet."""
    requests_max: int = 1024
    """Requests that are being served at the same time, on both ports together."""
    connections_max: int = 4096
    """Open connections, on each port."""
    body_timeout_ms: int = 30_000
    """From a request's headers to the end of its body."""
    deduplicate: bool = True
    """Is a body that comes again within log.digest_window_ms the same request?"""
    tls_certificate_file: str | None = None
    """The certificate of this server, in PEM, with what leads to its authority. Turns TLS on."""
    tls_key_file: str | None = None
    """Its key, in PEM, without a password."""
    tls_client_ca_file: str | None = None
    """Clients must show a certificate that one of these authorities has signed."""
    token_file: str | None = None
    """One token per line; a client sends one of them as `Authorization: Bearer <token>`."""
    insecure: bool = False
    """Accept whoever comes, on any address, in clear text."""
    cors_origins: tuple[str, ...] = ("http://localhost:*", "http://127.0.0.1:*")
    """Web pages that may send from a browser; `*` stands for any port."""

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            self._check(name, getattr(self, name))
        if self.grpc_port == self.http_port != 0:
            raise Malformed(f"ingest.grpc_port and ingest.http_port are both {self.http_port}")
        if self.in_flight_bytes_max < 2 * self.body_bytes_max:
            raise Malformed(
                f"ingest.in_flight_bytes_max ({self.in_flight_bytes_max}) is below twice "
                f"ingest.body_bytes_max ({self.body_bytes_max}): a large body could never be "
                "decompressed; raise it or lower the other"
            )
        check_reach(self)

    def _check(self, name: str, value: object) -> None:
        if value == "":
            raise Malformed(f"ingest.{name} is empty; set it, or leave it out")
        if name.endswith("_port"):
            if not 0 <= self.__getattribute__(name) <= PORT_MAX:
                raise Malformed(f"ingest.{name} is {value}; a port is 0 (any) to {PORT_MAX}")
        elif isinstance(value, int) and not isinstance(value, bool) and value < 1:
            raise Malformed(f"ingest.{name} is {value}; it must be at least 1")
        if name == "cors_origins":
            for origin in self.cors_origins:
                _check_origin(origin)


def check_reach(config: IngestConfig) -> None:
    """Refuse settings that would let strangers in, and settings that only look as if not.

    Only this machine reaches a loopback address. Every other address needs TLS, and a token or a
    client certificate, or the word `insecure`.
    """
    if (config.tls_certificate_file is None) != (config.tls_key_file is None):
        raise Malformed(
            "ingest.tls_certificate_file and ingest.tls_key_file need each other; set both"
        )
    if config.tls_client_ca_file is not None and config.tls_certificate_file is None:
        raise Malformed(
            "ingest.tls_client_ca_file asks clients for certificates, which needs TLS; set "
            "ingest.tls_certificate_file and ingest.tls_key_file as well"
        )
    if config.insecure or is_loopback(config.host):
        return
    if config.tls_certificate_file is None:
        raise Malformed(
            f"ingest.host is {config.host}, which other machines reach, and there is no TLS; set "
            "ingest.tls_certificate_file and ingest.tls_key_file, listen on 127.0.0.1, or say "
            "--insecure"
        )
    if config.token_file is None and config.tls_client_ca_file is None:
        raise Malformed(
            f"ingest.host is {config.host}, which other machines reach, and anybody could send; "
            "set ingest.token_file or ingest.tls_client_ca_file, or say --insecure"
        )


def is_loopback(host: str) -> bool:
    """Is this an address that only this machine reaches? Names other than localhost are not."""
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
        raise Malformed(
            f"ingest.cors_origins holds {origin!r}; an origin is http://host or https://host, "
            "with a port or :* behind it, or * alone"
        )
