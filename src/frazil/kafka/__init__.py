"""kafka: the Kafka port.

    bytes ─> framing ─> connection ─> router ─> topics, produce, fetch, groups, transactions ─> log
                             │                                     │
    bytes <──────────────────┴──── responses in order <────────────┘

    port.py         KafkaPort: the port, with everything behind it
    connection.py   KafkaConnection: one client's connection, its limits
    framing.py      FrameReader: requests out of a stream of bytes
    allowance.py    ByteAllowance: bytes that all connections together may hold
    router.py       ApiRouter: which handler answers which API, in which versions
    context.py      RequestContext, ConnectionState: who sent a request
    error_codes.py  ErrorCode: Kafka's codes, and the one of each of our errors
    lone_client.py  LoneClient: whether the event loop itself may write for a client
    loop_inbox.py   LoopInbox: calls from other threads, run on the event loop
    broker.py       Broker: node and cluster ids, advertised address
    producer_ids.py ProducerIds: ids of producers that never repeat
    client_telemetry.py  ClientTelemetry: metrics that clients push
    access/         who may do what: login, users, ACLs, quotas
    topics/         topics and the cluster
    produce/        batches from clients into the log
    fetch/          records out of the log
    groups/         consumer groups and their offsets
    transactions/   the transaction coordinator
    wire/           messages of the protocol, as classes and as bytes

Everything is owned by the event loop. Files are read, and large batches checked, in the threads
"frazil-kafka-read" and "frazil-kafka". The log's writer thread completes futures.
"""

from frazil.kafka.access.scram import Mechanism, new_credential
from frazil.kafka.access.users import UserFile, UserTable, check_user_name
from frazil.kafka.groups.description import consumer_groups
from frazil.kafka.groups.lag import GroupLag
from frazil.kafka.port import KafkaPort, KafkaUse
from frazil.kafka.topics.topic_configs import ConfigEntry, config_entries

__all__ = [
    "ConfigEntry",
    "GroupLag",
    "KafkaPort",
    "KafkaUse",
    "Mechanism",
    "UserFile",
    "UserTable",
    "check_user_name",
    "config_entries",
    "consumer_groups",
    "new_credential",
]
