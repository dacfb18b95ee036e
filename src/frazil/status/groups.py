"""ConsumerGroups: what the writer process reports about consumer groups, on request."""

from __future__ import annotations

from typing import Annotated

import msgspec

from frazil.model import doc


class ConsumerGroupSummary(msgspec.Struct, frozen=True, kw_only=True):
    """A consumer group."""

    group: str
    type: Annotated[str, doc("`classic` or `consumer` (KIP-848).")]
    state: Annotated[str, doc("Kafka's name, such as Stable, Empty, PreparingRebalance.")]
    protocol_type: Annotated[str | None, doc("`consumer`, `connect`; null without members.")]
    protocol: Annotated[str | None, doc("How partitions are assigned, such as `range`.")]
    members: int
    topics: Annotated[list[str], doc("Topics with committed offsets; at most 20.")]
    partitions: Annotated[int, doc("Partitions with a committed offset.")]
    lag_offsets: Annotated[int, doc("Offsets that are not committed yet.")]


class AssignedTopic(msgspec.Struct, frozen=True, kw_only=True):
    """Partitions of one topic that a member reads."""

    topic: str
    partitions: list[int]


class ConsumerGroupMember(msgspec.Struct, frozen=True, kw_only=True):
    """A member of a consumer group."""

    member_id: str
    instance_id: Annotated[str | None, doc("`group.instance.id` of a static member.")]
    client_id: str
    client_host: str
    assignment: Annotated[
        list[AssignedTopic] | None, doc("Null if the members use a format of their own.")
    ]


class ConsumerGroupOffset(msgspec.Struct, frozen=True, kw_only=True):
    """A partition that a group has committed an offset of, or that a member reads."""

    topic: str
    partition: int
    committed_offset: Annotated[int | None, doc("Next offset to read; null if none yet.")]
    end_offset: Annotated[int | None, doc("Last stable offset; null without a committed one.")]
    lag_offsets: Annotated[int | None, doc("Offsets that are not committed yet.")]
    member_id: Annotated[str | None, doc("Member that reads the partition.")]


class ConsumerGroupDetail(msgspec.Struct, frozen=True, kw_only=True):
    """Members of a group and its offsets, as far as they are listed."""

    members: Annotated[list[ConsumerGroupMember], doc("At most 500.")]
    offsets: Annotated[
        list[ConsumerGroupOffset], doc("By topic and partition; at most 2,000, the largest lags.")
    ]
    offset_count: Annotated[int, doc("All of them.")]


class ConsumerGroups(msgspec.Struct, frozen=True, kw_only=True):
    """Consumer groups that match a request."""

    is_enabled: Annotated[bool, doc("False if the node has no Kafka port.")]
    group_count: Annotated[int, doc("Groups that match.")]
    groups: Annotated[list[ConsumerGroupSummary], doc("Largest lag first; at most 1,000.")]
    detail: ConsumerGroupDetail | None = None


class GroupsQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Which consumer groups to report."""

    name: str | None = None
    """One group, with members and offsets."""
    search: str = ""
    """Text in their names."""
    topic: str | None = None
    """Those with committed offsets of this topic; lag counts only its partitions."""
