"""SyncGroup, API 14, versions 0-5. Generated from the definitions of Apache Kafka 4.2.1 by `python
-m tests.kafka.wire.generate`: do not edit. The descriptions are Kafka's, under the Apache License
2.0; see NOTICE.
"""

from __future__ import annotations

from typing import Annotated

from frazil.kafka.wire.schema import Field, KafkaMessage, Struct, Versions


class SyncGroupRequest(KafkaMessage):
    """Request in versions 0-5, flexible in 4+.

    Versions 1 and 2 are the same as version 0.

    Starting from version 3, we add a new field called groupInstanceId to indicate member
    identity across restarts.

    Version 4 is the first flexible version.

    Starting from version 5, the client sends the Protocol Type and the Protocol Name to the
    broker (KIP-559). The broker will reject the request if they are inconsistent with the Type
    and Name known by the broker.
    """

    VERSIONS = Versions("SyncGroupRequest", "0-5", flexible="4+", api_key=14)

    class SyncGroupRequestAssignment(Struct):
        """Each assignment."""

        member_id: Annotated[str, Field("string", "0+")] = ""
        """The ID of the member to assign."""
        assignment: Annotated[bytes, Field("bytes", "0+")] = b""
        """The member assignment."""

    group_id: Annotated[str, Field("string", "0+")] = ""
    """The unique group identifier."""
    generation_id: Annotated[int, Field("int32", "0+")] = 0
    """The generation of the group."""
    member_id: Annotated[str, Field("string", "0+")] = ""
    """The member ID assigned by the group."""
    group_instance_id: Annotated[str | None, Field("string", "3+", nullable="3+")] = None
    """The unique identifier of the consumer instance provided by end user."""
    protocol_type: Annotated[str | None, Field("string", "5+", nullable="5+", ignorable=True)] = (
        None
    )
    """The group protocol type."""
    protocol_name: Annotated[str | None, Field("string", "5+", nullable="5+", ignorable=True)] = (
        None
    )
    """The group protocol name."""
    assignments: Annotated[
        list[SyncGroupRequest.SyncGroupRequestAssignment],
        Field("[]SyncGroupRequestAssignment", "0+"),
    ] = []
    """Each assignment."""


class SyncGroupResponse(KafkaMessage):
    """Response in versions 0-5, flexible in 4+.

    Version 1 adds throttle time.

    Starting in version 2, on quota violation, brokers send out responses before throttling.

    Starting from version 3, syncGroupRequest supports a new field called groupInstanceId to
    indicate member identity across restarts.

    Version 4 is the first flexible version.

    Starting from version 5, the broker sends back the Protocol Type and the Protocol Name to the
    client (KIP-559).
    """

    VERSIONS = Versions("SyncGroupResponse", "0-5", flexible="4+", api_key=14)

    throttle_time_ms: Annotated[int, Field("int32", "1+", ignorable=True)] = 0
    """The duration in milliseconds for which the request was throttled due to a quota violation,
    or zero if the request did not violate any quota."""
    error_code: Annotated[int, Field("int16", "0+")] = 0
    """The error code, or 0 if there was no error."""
    protocol_type: Annotated[str | None, Field("string", "5+", nullable="5+", ignorable=True)] = (
        None
    )
    """The group protocol type."""
    protocol_name: Annotated[str | None, Field("string", "5+", nullable="5+", ignorable=True)] = (
        None
    )
    """The group protocol name."""
    assignment: Annotated[bytes, Field("bytes", "0+")] = b""
    """The member assignment."""
