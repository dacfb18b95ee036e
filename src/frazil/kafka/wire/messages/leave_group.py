"""LeaveGroup, API 13, versions 0-5. Generated from the definitions of Apache Kafka 4.2.1 by `python
-m tests.kafka.wire.generate`: do not edit. The descriptions are Kafka's, under the Apache License
2.0; see NOTICE.
"""

from __future__ import annotations

from typing import Annotated

from frazil.kafka.wire.schema import Field, KafkaMessage, Struct, Versions


class LeaveGroupRequest(KafkaMessage):
    """Request in versions 0-5, flexible in 4+.

    Version 1 and 2 are the same as version 0.

    Version 3 defines batch processing scheme with group.instance.id + member.id for identity

    Version 4 is the first flexible version.

    Version 5 adds the Reason field (KIP-800).
    """

    VERSIONS = Versions("LeaveGroupRequest", "0-5", flexible="4+", api_key=13)

    class MemberIdentity(Struct):
        """List of leaving member identities."""

        member_id: Annotated[str, Field("string", "3+")] = ""
        """The member ID to remove from the group."""
        group_instance_id: Annotated[str | None, Field("string", "3+", nullable="3+")] = None
        """The group instance ID to remove from the group."""
        reason: Annotated[str | None, Field("string", "5+", nullable="5+", ignorable=True)] = None
        """The reason why the member left the group."""

    group_id: Annotated[str, Field("string", "0+")] = ""
    """The ID of the group to leave."""
    member_id: Annotated[str, Field("string", "0-2")] = ""
    """The member ID to remove from the group."""
    members: Annotated[list[LeaveGroupRequest.MemberIdentity], Field("[]MemberIdentity", "3+")] = []
    """List of leaving member identities."""


class LeaveGroupResponse(KafkaMessage):
    """Response in versions 0-5, flexible in 4+.

    Version 1 adds the throttle time.

    Starting in version 2, on quota violation, brokers send out responses before throttling.

    Starting in version 3, we will make leave group request into batch mode and add
    group.instance.id.

    Version 4 is the first flexible version.

    Version 5 is the same as version 4.
    """

    VERSIONS = Versions("LeaveGroupResponse", "0-5", flexible="4+", api_key=13)

    class MemberResponse(Struct):
        """List of leaving member responses."""

        member_id: Annotated[str, Field("string", "3+")] = ""
        """The member ID to remove from the group."""
        group_instance_id: Annotated[str | None, Field("string", "3+", nullable="3+")] = ""
        """The group instance ID to remove from the group."""
        error_code: Annotated[int, Field("int16", "3+")] = 0
        """The error code, or 0 if there was no error."""

    throttle_time_ms: Annotated[int, Field("int32", "1+", ignorable=True)] = 0
    """The duration in milliseconds for which the request was throttled due to a quota violation,
    or zero if the request did not violate any quota."""
    error_code: Annotated[int, Field("int16", "0+")] = 0
    """The error code, or 0 if there was no error."""
    members: Annotated[
        list[LeaveGroupResponse.MemberResponse], Field("[]MemberResponse", "3+")
    ] = []
    """List of leaving member responses."""
