"""what members of classic groups tell each other. Generated from the definitions of Apache Kafka
4.2.1 by `python -m tests.kafka.wire.generate`: do not edit. The descriptions are Kafka's, under the
Apache License 2.0; see NOTICE.
"""

from __future__ import annotations

from typing import Annotated

from frazil.kafka.wire.schema import Field, KafkaMessage, Struct, Versions


class ConsumerProtocolAssignment(KafkaMessage):
    """Message in versions 0-3.

    Assignment part of the Consumer Protocol.

    The current implementation assumes that future versions will not break compatibility. When it
    encounters a newer version, it parses it using the current format. This basically means that
    new versions cannot remove or reorder any of the existing fields.

    Version 2 is to support a new field "GenerationId" in ConsumerProtocolSubscription.

    Version 3 adds rack id to ConsumerProtocolSubscription.
    """

    VERSIONS = Versions("ConsumerProtocolAssignment", "0-3")

    class TopicPartition(Struct):
        """The list of topics and partitions assigned to this consumer."""

        topic: Annotated[str, Field("string", "0+")] = ""
        """The topic name."""
        partitions: Annotated[list[int], Field("[]int32", "0+")] = []
        """The list of partitions assigned to this consumer."""

    assigned_partitions: Annotated[
        list[ConsumerProtocolAssignment.TopicPartition], Field("[]TopicPartition", "0+")
    ] = []
    """The list of topics and partitions assigned to this consumer."""
    user_data: Annotated[bytes | None, Field("bytes", "0+", nullable="0+")] = None
    """User data."""


class ConsumerProtocolSubscription(KafkaMessage):
    """Message in versions 0-3.

    Subscription part of the Consumer Protocol.

    The current implementation assumes that future versions will not break compatibility. When it
    encounters a newer version, it parses it using the current format. This basically means that
    new versions cannot remove or reorder any of the existing fields.

    Version 1 added the "OwnedPartitions" field to allow assigner know what partitions each
    member owned

    Version 2 added a new field "GenerationId" to indicate if the member has out-of-date
    ownedPartitions.

    Version 3 adds rack id to enable rack-aware assignment.
    """

    VERSIONS = Versions("ConsumerProtocolSubscription", "0-3")

    class TopicPartition(Struct):
        """The partitions that the member owns."""

        topic: Annotated[str, Field("string", "1+")] = ""
        """The topic name."""
        partitions: Annotated[list[int], Field("[]int32", "1+")] = []
        """The partition ids."""

    topics: Annotated[list[str], Field("[]string", "0+")] = []
    """The topics that the member wants to consume."""
    user_data: Annotated[bytes | None, Field("bytes", "0+", nullable="0+")] = None
    """User data that will be passed back to the consumer."""
    owned_partitions: Annotated[
        list[ConsumerProtocolSubscription.TopicPartition],
        Field("[]TopicPartition", "1+", ignorable=True),
    ] = []
    """The partitions that the member owns."""
    generation_id: Annotated[int, Field("int32", "2+", ignorable=True)] = -1
    """The generation id of the member."""
    rack_id: Annotated[str | None, Field("string", "3+", nullable="3+", ignorable=True)] = None
    """The rack id of the member."""
