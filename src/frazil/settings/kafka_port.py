"""KafkaPortConfig: settings of the Kafka port."""

from __future__ import annotations

from typing import Annotated

import msgspec

from frazil.errors import InvalidSetting
from frazil.model import MiB, doc, require_at_least
from frazil.settings.client_telemetry import ClientTelemetryConfig
from frazil.settings.groups import GroupsConfig
from frazil.settings.log import PARTITIONS_MAX
from frazil.settings.transactions import TransactionsConfig

PORT_MAX = 65535
CHECKED_APART = ("port", "retention_ms", "session_lifetime_ms")
PRINCIPAL_PREFIX = "User:"
REQUEST_BYTES_MIN = MiB
"""A client with default settings sends requests of this size."""


class KafkaPortConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of the Kafka port. Its certificate and tokens are those of `ingest`. Users, ACLs,
    quotas: docs/kafka.md."""

    enabled: Annotated[bool, doc("Open the Kafka port.")] = True
    host: Annotated[str | None, doc("Address to listen on. Default: that of `ingest.host`.")] = None
    port: Annotated[int, doc("Port to listen on. 0 picks a free port.")] = 9092
    advertised: Annotated[
        str | None,
        doc("HOST:PORT that clients are told to connect to. Default: where they connected."),
    ] = None
    scram: Annotated[
        bool, doc("Clients must log in. `frazil users add` makes users for SCRAM.")
    ] = False
    session_lifetime_ms: Annotated[
        int, doc("Clients must log in again after this long. 0 asks for it once.")
    ] = 0
    acls: Annotated[bool, doc("Refuse what no ACL allows.")] = False
    super_users: Annotated[
        tuple[str, ...], doc("Principals that may do everything, as in `User:admin`.")
    ] = ()
    auto_create_topics: Annotated[
        bool, doc("Create a topic when a client that allows it asks for it.")
    ] = True
    partitions: Annotated[int, doc("Partitions of a topic created without a number of them.")] = 1
    retention_ms: Annotated[int, doc("`retention.ms` of a topic created without one.")] = (
        7 * 86_400_000
    )
    request_bytes_max: Annotated[int, doc("Largest request.")] = 64 * MiB
    in_flight_bytes_max: Annotated[
        int, doc("Requests not answered yet. Above it, no more are read.")
    ] = 128 * MiB
    fetch_bytes_max: Annotated[int, doc("Records in one fetch response.")] = 32 * MiB
    response_bytes_max: Annotated[
        int, doc("Responses that clients have not read yet. Above it, fetches wait.")
    ] = 128 * MiB
    connections_max: Annotated[int, doc("Open connections.")] = 4096
    request_timeout_ms: Annotated[
        int, doc("Timeout from the first byte of a request to its last, and to read a response.")
    ] = 30_000
    idle_timeout_ms: Annotated[int, doc("Close a connection that is idle for this long.")] = 600_000
    groups: GroupsConfig = msgspec.field(default_factory=GroupsConfig)
    telemetry: ClientTelemetryConfig = msgspec.field(default_factory=ClientTelemetryConfig)
    transactions: TransactionsConfig = msgspec.field(default_factory=TransactionsConfig)

    def __post_init__(self) -> None:
        require_at_least(
            1,
            "kafka",
            self,
            (name for name in self.__struct_fields__ if name not in CHECKED_APART),
        )
        require_at_least(0, "kafka", self, ["session_lifetime_ms"])
        if self.acls and not self.super_users:
            raise InvalidSetting(
                "kafka.acls is true and kafka.super_users is empty: nobody could create the first "
                'ACL; set it, as in ["User:admin"]',
                "kafka.acls",
                "kafka.super_users",
            )
        for principal in self.super_users:
            if not principal.startswith(PRINCIPAL_PREFIX) or principal == PRINCIPAL_PREFIX:
                raise InvalidSetting(
                    f"kafka.super_users contains {principal!r}; a principal begins with "
                    f"{PRINCIPAL_PREFIX}, as in User:admin or User:CN=admin,O=Example",
                    "kafka.super_users",
                )
        if not 0 <= self.port <= PORT_MAX:
            raise InvalidSetting(
                f"kafka.port is {self.port}; a port must be 0 to {PORT_MAX} (0 picks a free one)",
                "kafka.port",
            )
        if self.host == "":
            raise InvalidSetting("kafka.host is empty; set it, or remove it", "kafka.host")
        if self.advertised is not None:
            split_address(self.advertised)
        if self.partitions > PARTITIONS_MAX:
            raise InvalidSetting(
                f"kafka.partitions is {self.partitions}; it must be 1 to {PARTITIONS_MAX}",
                "kafka.partitions",
            )
        if self.retention_ms < -1:
            raise InvalidSetting(
                f"kafka.retention_ms is {self.retention_ms}; it must be at least 0, or -1 to keep "
                "records forever",
                "kafka.retention_ms",
            )
        if self.request_bytes_max < REQUEST_BYTES_MIN:
            raise InvalidSetting(
                f"kafka.request_bytes_max is {self.request_bytes_max}; clients send requests of "
                f"{REQUEST_BYTES_MIN} bytes by default: set at least that",
                "kafka.request_bytes_max",
            )
        if self.in_flight_bytes_max < self.request_bytes_max:
            raise InvalidSetting(
                f"kafka.in_flight_bytes_max ({self.in_flight_bytes_max}) is less than "
                f"kafka.request_bytes_max ({self.request_bytes_max}): a large request could never "
                "be read; raise the first or lower the second",
                "kafka.in_flight_bytes_max",
                "kafka.request_bytes_max",
            )


def split_address(address: str) -> tuple[str, int]:
    """Return host and port of `kafka.advertised`. An IPv6 address has brackets."""
    host, _, port = address.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not host or not port.isdecimal() or not 1 <= int(port) <= PORT_MAX:
        raise InvalidSetting(
            f"kafka.advertised is {address!r}; it must be HOST:PORT, as in kafka.example.org:9092",
            "kafka.advertised",
        )
    return host, int(port)
