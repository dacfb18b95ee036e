"""Config: the settings of a node, one frozen struct per room, and the rules between rooms."""

from __future__ import annotations

from typing import Annotated

import msgspec

from frazil.errors import InvalidSetting
from frazil.model import Promotions, doc
from frazil.settings import (
    ConnectorsConfig,
    ExternalConfig,
    FlightConfig,
    HotConfig,
    IngestConfig,
    KafkaPortConfig,
    LakeConfig,
    LogConfig,
    PromoteRule,
    QueryConfig,
    RedactRule,
    RulesConfig,
    ServeConfig,
    StagesConfig,
    TablesConfig,
    is_loopback,
    promotions_of,
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
    promote: Annotated[
        tuple[PromoteRule, ...],
        doc("Attributes that get a column of their own. See docs/schemas.md."),
    ] = ()
    connections: Annotated[
        dict[str, str],
        doc(
            "Credentials and options of stages and connectors, as `name.option`: "
            "`minio.endpoint`, `minio.secret_access_key`. See docs/loading.md."
        ),
    ] = msgspec.field(default_factory=dict)
    log: LogConfig = msgspec.field(default_factory=LogConfig)
    ingest: IngestConfig = msgspec.field(default_factory=IngestConfig)
    kafka: KafkaPortConfig = msgspec.field(default_factory=KafkaPortConfig)
    hot: HotConfig = msgspec.field(default_factory=HotConfig)
    lake: LakeConfig = msgspec.field(default_factory=LakeConfig)
    query: QueryConfig = msgspec.field(default_factory=QueryConfig)
    serve: ServeConfig = msgspec.field(default_factory=ServeConfig)
    flight: FlightConfig = msgspec.field(default_factory=FlightConfig)
    stages: StagesConfig = msgspec.field(default_factory=StagesConfig)
    connectors: ConnectorsConfig = msgspec.field(default_factory=ConnectorsConfig)
    external: ExternalConfig = msgspec.field(default_factory=ExternalConfig)
    tables: TablesConfig = msgspec.field(default_factory=TablesConfig)
    rules: RulesConfig = msgspec.field(default_factory=RulesConfig)

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
        promotions_of(self.promote)
        if self.ingest.body_bytes_max + BATCH_OVERHEAD_BYTES > self.log.batch_bytes_max:
            raise InvalidSetting(
                f"ingest.body_bytes_max ({self.ingest.body_bytes_max}) does not fit into "
                f"log.batch_bytes_max ({self.log.batch_bytes_max}); lower the first or raise the "
                "second",
                "ingest.body_bytes_max",
                "log.batch_bytes_max",
            )
        self._check_ports()
        has_tokens = self.ingest.token_file is not None
        if self.kafka.enabled and self.kafka.host is not None:
            logins = {"kafka.scram = true": self.kafka.scram, "ingest.token_file": has_tokens}
            _check_reach("kafka.host", self.kafka.host, self.ingest, logins)
        if self.has_flight and self.flight.host is not None:
            has_own_tokens = self.serve.token_file is not None
            logins = {"serve.token_file": has_own_tokens, "ingest.token_file": has_tokens}
            _check_reach("flight.host", self.flight.host, self.ingest, logins)

    @property
    def promotions(self) -> Promotions:
        """The columns of `promote`, by table."""
        return promotions_of(self.promote)

    @property
    def kafka_host(self) -> str:
        """The address that the Kafka port listens on."""
        return self.ingest.host if self.kafka.host is None else self.kafka.host

    @property
    def has_flight(self) -> bool:
        """Whether the Flight SQL port is opened: it needs SQL."""
        return self.flight.enabled and self.serve.enabled and self.hot.enabled

    @property
    def flight_host(self) -> str:
        """The address that the Flight SQL port listens on."""
        return self.ingest.host if self.flight.host is None else self.flight.host

    def _check_ports(self) -> None:
        ports = {
            "ingest.grpc_port": self.ingest.grpc_port,
            "ingest.http_port": self.ingest.http_port,
        }
        if self.serve.enabled:
            ports["serve.http_port"] = self.serve.http_port
        if self.kafka.enabled:
            ports["kafka.port"] = self.kafka.port
        if self.has_flight:
            ports["flight.port"] = self.flight.port
        names: dict[int, str] = {}
        for name, port in ports.items():
            if port in names and port != 0:
                raise InvalidSetting(f"{name} and {names[port]} are both {port}", name, names[port])
            names[port] = name


def _check_reach(setting: str, host: str, ingest: IngestConfig, logins: dict[str, bool]) -> None:
    """Reject a port that would admit anyone from the network. `logins`: ways to authenticate
    clients, and whether each is set."""
    if ingest.insecure or is_loopback(host):
        return
    if ingest.tls_certificate_file is None:
        raise InvalidSetting(
            f"{setting} is {host}, which other machines can reach, and TLS is off; set "
            "ingest.tls_certificate_file and ingest.tls_key_file, listen on 127.0.0.1, or pass "
            "--insecure",
            setting,
        )
    if ingest.tls_client_ca_file is None and not any(logins.values()):
        raise InvalidSetting(
            f"{setting} is {host}, which other machines can reach, and clients are not "
            f"authenticated; set {', '.join(logins)} or ingest.tls_client_ca_file, or pass "
            "--insecure",
            setting,
        )
