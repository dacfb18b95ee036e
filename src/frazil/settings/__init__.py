"""settings: the settings of every room, as structs. Light, so that any process can load them.

    log.py        LogConfig, TopicConfig
    ingest.py     IngestConfig
    limits.py     LimitsConfig: limits on the records of a request
    redact.py     RedactRule: what to remove from requests
    promote.py    PromoteRule: attributes with columns of their own
    hot.py        HotConfig
    lake.py       LakeConfig
    kafka.py      KafkaConfig: the Kafka source of the lake
    kafka_port.py KafkaPortConfig
    groups.py     GroupsConfig: consumer groups of the Kafka port
    client_telemetry.py  ClientTelemetryConfig: metrics that Kafka clients push
    transactions.py  TransactionsConfig: transactions of the Kafka port
    query.py      QueryConfig
    rules.py      RulesConfig: alerts and recording rules
    serve.py      ServeConfig
    external.py   ExternalConfig: limits of external tables
    flight.py     FlightConfig: the Flight SQL port
    jaeger.py     JaegerConfig: the port on which a Jaeger reads traces
    tables.py     TablesConfig: keyed tables
    retention.py  RetentionRule: how long rows are kept
    stages.py     StagesConfig: where stages may be
    connections.py  options of the connections that statements name
    connectors.py  ConnectorsConfig: limits of connectors

`frazil.config` loads them from flags, environment and file. A process of a node imports only the
rooms it runs, but checks the settings of all.
"""

from frazil.settings.client_telemetry import ClientTelemetryConfig
from frazil.settings.connections import connection_options
from frazil.settings.connectors import ConnectorsConfig
from frazil.settings.external import ExternalConfig
from frazil.settings.flight import FlightConfig
from frazil.settings.groups import GroupsConfig
from frazil.settings.hot import HotConfig
from frazil.settings.ingest import IngestConfig, is_loopback
from frazil.settings.jaeger import JaegerConfig
from frazil.settings.kafka import KafkaConfig
from frazil.settings.kafka_port import KafkaPortConfig, split_address
from frazil.settings.lake import LakeConfig
from frazil.settings.limits import LimitsConfig
from frazil.settings.log import LogConfig, TopicConfig
from frazil.settings.promote import PromoteRule, promotions_of
from frazil.settings.query import QueryConfig
from frazil.settings.redact import RedactRule
from frazil.settings.retention import RetentionRule, retention_rules
from frazil.settings.rules import RulesConfig, check_url
from frazil.settings.serve import ServeConfig
from frazil.settings.stages import StagesConfig
from frazil.settings.tables import TablesConfig
from frazil.settings.transactions import TransactionsConfig

__all__ = [
    "ClientTelemetryConfig",
    "ConnectorsConfig",
    "ExternalConfig",
    "FlightConfig",
    "GroupsConfig",
    "HotConfig",
    "IngestConfig",
    "JaegerConfig",
    "KafkaConfig",
    "KafkaPortConfig",
    "LakeConfig",
    "LimitsConfig",
    "LogConfig",
    "PromoteRule",
    "QueryConfig",
    "RedactRule",
    "RetentionRule",
    "RulesConfig",
    "ServeConfig",
    "StagesConfig",
    "TablesConfig",
    "TopicConfig",
    "TransactionsConfig",
    "check_url",
    "connection_options",
    "is_loopback",
    "promotions_of",
    "retention_rules",
    "split_address",
]
