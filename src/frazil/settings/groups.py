"""GroupsConfig: settings of consumer groups."""

from __future__ import annotations

from typing import Annotated

import msgspec

from frazil.errors import InvalidSetting
from frazil.model import KiB, MiB, doc, require_at_least

STRING_BYTES_MAX = 0x7FFF
"""Longest text in Kafka's record format."""


class GroupsConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Consumer groups: limits and times."""

    groups_max: Annotated[int, doc("Groups, those that only commit offsets included.")] = 10_000
    members_max: Annotated[int, doc("Members of one group.")] = 5_000
    member_bytes_max: Annotated[
        int, doc("Bytes that one member may send when it joins: its ids and all its protocols.")
    ] = 256 * KiB
    group_bytes_max: Annotated[
        int, doc("Bytes of one group: protocols and assignments of all its members.")
    ] = 8 * MiB
    offsets_max: Annotated[int, doc("Committed offsets of all groups, kept in memory.")] = 500_000
    metadata_bytes_max: Annotated[int, doc("Bytes of the text committed with an offset.")] = 4 * KiB
    session_timeout_ms_min: Annotated[
        int, doc("Shortest session timeout that a member may ask for.")
    ] = 6_000
    session_timeout_ms_max: Annotated[
        int, doc("Longest session timeout that a member may ask for.")
    ] = 1_800_000
    consumer_session_timeout_ms: Annotated[
        int,
        doc(
            "Remove a member that was silent for this long, if the server assigns the partitions "
            "(`group.protocol=consumer`)."
        ),
    ] = 45_000
    consumer_heartbeat_interval_ms: Annotated[
        int, doc("How often such members are told to send heartbeats.")
    ] = 5_000
    initial_rebalance_delay_ms: Annotated[
        int, doc("Wait this long for more members when the first one joins. 0 does not wait.")
    ] = 500
    offsets_retention_ms: Annotated[
        int, doc("Keep the offsets of a group without members for this long.")
    ] = 7 * 86_400_000
    expiry_interval_ms: Annotated[
        int, doc("Look for expired offsets and empty groups this often.")
    ] = 600_000

    def __post_init__(self) -> None:
        positive = [n for n in self.__struct_fields__ if n != "initial_rebalance_delay_ms"]
        require_at_least(1, "kafka.groups", self, positive)
        require_at_least(0, "kafka.groups", self, ["initial_rebalance_delay_ms"])
        if self.session_timeout_ms_min > self.session_timeout_ms_max:
            raise InvalidSetting(
                f"kafka.groups.session_timeout_ms_min ({self.session_timeout_ms_min}) is above "
                f"kafka.groups.session_timeout_ms_max ({self.session_timeout_ms_max})",
                "kafka.groups.session_timeout_ms_min",
                "kafka.groups.session_timeout_ms_max",
            )
        if self.consumer_heartbeat_interval_ms >= self.consumer_session_timeout_ms:
            raise InvalidSetting(
                "kafka.groups.consumer_heartbeat_interval_ms "
                f"({self.consumer_heartbeat_interval_ms}) is not below "
                f"kafka.groups.consumer_session_timeout_ms ({self.consumer_session_timeout_ms})",
                "kafka.groups.consumer_heartbeat_interval_ms",
                "kafka.groups.consumer_session_timeout_ms",
            )
        if self.metadata_bytes_max > STRING_BYTES_MAX:
            raise InvalidSetting(
                f"kafka.groups.metadata_bytes_max ({self.metadata_bytes_max}) is above the "
                f"longest text that Kafka stores, {STRING_BYTES_MAX} bytes",
                "kafka.groups.metadata_bytes_max",
            )
