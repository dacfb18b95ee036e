"""JoinGroup, API 11, versions 0-9. Generated from the definitions of Apache Kafka 4.2.1 by `python
-m tests.kafka.wire.generate`: do not edit. The descriptions are Kafka's, under the Apache License
2.0; see NOTICE.
"""

from __future__ import annotations

from typing import Annotated

from frazil.kafka.wire.schema import Field, KafkaMessage, Struct, Versions


class JoinGroupRequest(KafkaMessage):
    """Request in versions 0-9, flexible in 6+.

    Version 1 adds RebalanceTimeoutMs. Version 2 and 3 are the same as version 1.

    Starting from version 4, the client needs to issue a second request to join group

    Starting from version 5, we add a new field called groupInstanceId to indicate member
    identity across restarts. with assigned id.

    Version 6 is the first flexible version.

    Version 7 is the same as version 6.

    Version 8 adds the Reason field (KIP-800).

    Version 9 is the same as version 8.
    """

    VERSIONS = Versions("JoinGroupRequest", "0-9", flexible="6+", api_key=11)

    class JoinGroupRequestProtocol(Struct):
        """The list of protocols that the member supports."""

        name: Annotated[str, Field("string", "0+")] = ""
        """The protocol name."""
        metadata: Annotated[bytes, Field("bytes", "0+")] = b""
        """The protocol metadata."""

    group_id: Annotated[str, Field("string", "0+")] = ""
    """The group identifier."""
    session_timeout_ms: Annotated[int, Field("int32", "0+")] = 0
    """The coordinator considers the consumer dead if it receives no heartbeat after this timeout
    in milliseconds."""
    rebalance_timeout_ms: Annotated[int, Field("int32", "1+", ignorable=True)] = -1
    """The maximum time in milliseconds that the coordinator will wait for each member to rejoin
    when rebalancing the group."""
    member_id: Annotated[str, Field("string", "0+")] = ""
    """The member id assigned by the group coordinator."""
    group_instance_id: Annotated[str | None, Field("string", "5+", nullable="5+")] = None
    """The unique identifier of the consumer instance provided by end user."""
    protocol_type: Annotated[str, Field("string", "0+")] = ""
    """The unique name the for class of protocols implemented by the group we want to join."""
    protocols: Annotated[
        list[JoinGroupRequest.JoinGroupRequestProtocol], Field("[]JoinGroupRequestProtocol", "0+")
    ] = []
    """The list of protocols that the member supports."""
    reason: Annotated[str | None, Field("string", "8+", nullable="8+", ignorable=True)] = None
    """The reason why the member (re-)joins the group."""


class JoinGroupResponse(KafkaMessage):
    """Response in versions 0-9, flexible in 6+.

    Version 1 is the same as version 0.

    Version 2 adds throttle time.

    Starting in version 3, on quota violation, brokers send out responses before throttling.

    Starting in version 4, the client needs to issue a second request to join group with assigned
    id.

    Version 5 is bumped to apply group.instance.id to identify member across restarts.

    Version 6 is the first flexible version.

    Starting from version 7, the broker sends back the Protocol Type to the client (KIP-559).

    Version 8 is the same as version 7.

    Version 9 adds the SkipAssignment field.
    """

    VERSIONS = Versions("JoinGroupResponse", "0-9", flexible="6+", api_key=11)

    class JoinGroupResponseMember(Struct):
        """The group members."""

        member_id: Annotated[str, Field("string", "0+")] = ""
        """The group member ID."""
        group_instance_id: Annotated[
            str | None, Field("string", "5+", nullable="5+", ignorable=True)
        ] = None
        """The unique identifier of the consumer instance provided by end user."""
        metadata: Annotated[bytes, Field("bytes", "0+")] = b""
        """The group member metadata."""

    throttle_time_ms: Annotated[int, Field("int32", "2+", ignorable=True)] = 0
    """The duration in milliseconds for which the request was throttled due to a quota violation,
    or zero if the request did not violate any quota."""
    error_code: Annotated[int, Field("int16", "0+")] = 0
    """The error code, or 0 if there was no error."""
    generation_id: Annotated[int, Field("int32", "0+")] = -1
    """The generation ID of the group."""
    protocol_type: Annotated[str | None, Field("string", "7+", nullable="7+", ignorable=True)] = (
        None
    )
    """The group protocol name."""
    protocol_name: Annotated[str | None, Field("string", "0+", nullable="7+")] = ""
    """The group protocol selected by the coordinator."""
    leader: Annotated[str, Field("string", "0+")] = ""
    """The leader of the group."""
    skip_assignment: Annotated[bool, Field("bool", "9+")] = False
    """True if the leader must skip running the assignment."""
    member_id: Annotated[str, Field("string", "0+")] = ""
    """The member ID assigned by the group coordinator."""
    members: Annotated[
        list[JoinGroupResponse.JoinGroupResponseMember], Field("[]JoinGroupResponseMember", "0+")
    ] = []
    """The group members."""
