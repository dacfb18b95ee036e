"""status: what each process of a node reports about itself.

    health.py    Check: state of one component, with cause and remedy
    uptime.py    Uptime, Rates: state, start time, recent rates
    process.py   memory, CPU and open files of a process
    families.py  metrics under their Prometheus names, joined over processes
    groups.py    ConsumerGroups: consumer groups of the Kafka port
    writer.py    WriterStatus: everything the writer reports

Structs that are sent between processes; collecting them is up to each process.
"""

from frazil.status.families import Family, Point, counter, gauge, merged, own_families
from frazil.status.groups import (
    AssignedTopic,
    ConsumerGroupDetail,
    ConsumerGroupMember,
    ConsumerGroupOffset,
    ConsumerGroups,
    ConsumerGroupSummary,
    GroupsQuery,
)
from frazil.status.health import Check, Health, is_ready, readiness_text
from frazil.status.process import ProcessInfo, process_info
from frazil.status.uptime import WINDOW_S, Rates, State, Timing, Uptime
from frazil.status.writer import (
    GroupPartitionStatus,
    GroupStatus,
    IngestStatus,
    KafkaStatus,
    LogUse,
    OtlpAddresses,
    Rate,
    SignalStatus,
    SubscriberStatus,
    TransportStatus,
    WriterStatus,
)

__all__ = [
    "WINDOW_S",
    "AssignedTopic",
    "Check",
    "ConsumerGroupDetail",
    "ConsumerGroupMember",
    "ConsumerGroupOffset",
    "ConsumerGroupSummary",
    "ConsumerGroups",
    "Family",
    "GroupPartitionStatus",
    "GroupStatus",
    "GroupsQuery",
    "Health",
    "IngestStatus",
    "KafkaStatus",
    "LogUse",
    "OtlpAddresses",
    "Point",
    "ProcessInfo",
    "Rate",
    "Rates",
    "SignalStatus",
    "State",
    "SubscriberStatus",
    "Timing",
    "TransportStatus",
    "Uptime",
    "WriterStatus",
    "counter",
    "gauge",
    "is_ready",
    "merged",
    "own_families",
    "process_info",
    "readiness_text",
]
