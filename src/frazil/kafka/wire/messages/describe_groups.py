"""DescribeGroups, API 15, versions 0-6. Generated from the definitions of Apache Kafka 4.2.1 by
`python -m tests.kafka.wire.generate`: do not edit. The descriptions are Kafka's, under the Apache
License 2.0; see NOTICE.
"""

from __future__ import annotations

from typing import Annotated

from frazil.kafka.wire.schema import Field, KafkaMessage, Struct, Versions


class DescribeGroupsRequest(KafkaMessage):
    """Request in versions 0-6, flexible in 5+.

    Versions 1 and 2 are the same as version 0.

    Starting in version 3, authorized operations can be requested.

    Starting in version 4, the response will include group.instance.id info for members.

    Version 5 is the first flexible version.

    Version 6 returns error code GROUP_ID_NOT_FOUND if the group ID is not found (KIP-1043).
    """

    VERSIONS = Versions("DescribeGroupsRequest", "0-6", flexible="5+", api_key=15)

    groups: Annotated[list[str], Field("[]string", "0+")] = []
    """The names of the groups to describe."""
    include_authorized_operations: Annotated[bool, Field("bool", "3+")] = False
    """Whether to include authorized operations."""


class DescribeGroupsResponse(KafkaMessage):
    """Response in versions 0-6, flexible in 5+.

    Version 1 added throttle time.

    Starting in version 2, on quota violation, brokers send out responses before throttling.

    Starting in version 3, brokers can send authorized operations.

    Starting in version 4, the response will optionally include group.instance.id info for
    members.

    Version 5 is the first flexible version.

    Version 6 returns error code GROUP_ID_NOT_FOUND if the group ID is not found (KIP-1043).
    """

    VERSIONS = Versions("DescribeGroupsResponse", "0-6", flexible="5+", api_key=15)

    class DescribedGroupMember(Struct):
        """The group members."""

        member_id: Annotated[str, Field("string", "0+")] = ""
        """The member id."""
        group_instance_id: Annotated[
            str | None, Field("string", "4+", nullable="4+", ignorable=True)
        ] = None
        """The unique identifier of the consumer instance provided by end user."""
        client_id: Annotated[str, Field("string", "0+")] = ""
        """The client ID used in the member's latest join group request."""
        client_host: Annotated[str, Field("string", "0+")] = ""
        """The client host."""
        member_metadata: Annotated[bytes, Field("bytes", "0+")] = b""
        """The metadata corresponding to the current group protocol in use."""
        member_assignment: Annotated[bytes, Field("bytes", "0+")] = b""
        """The current assignment provided by the group leader."""

    class DescribedGroup(Struct):
        """Each described group."""

        error_code: Annotated[int, Field("int16", "0+")] = 0
        """The describe error, or 0 if there was no error."""
        error_message: Annotated[str | None, Field("string", "6+", nullable="6+")] = None
        """The describe error message, or null if there was no error."""
        group_id: Annotated[str, Field("string", "0+")] = ""
        """The group ID string."""
        group_state: Annotated[str, Field("string", "0+")] = ""
        """The group state string, or the empty string."""
        protocol_type: Annotated[str, Field("string", "0+")] = ""
        """The group protocol type, or the empty string."""
        protocol_data: Annotated[str, Field("string", "0+")] = ""
        """The group protocol data, or the empty string."""
        members: Annotated[
            list[DescribeGroupsResponse.DescribedGroupMember], Field("[]DescribedGroupMember", "0+")
        ] = []
        """The group members."""
        authorized_operations: Annotated[int, Field("int32", "3+")] = -2147483648
        """32-bit bitfield to represent authorized operations for this group."""

    throttle_time_ms: Annotated[int, Field("int32", "1+", ignorable=True)] = 0
    """The duration in milliseconds for which the request was throttled due to a quota violation,
    or zero if the request did not violate any quota."""
    groups: Annotated[
        list[DescribeGroupsResponse.DescribedGroup], Field("[]DescribedGroup", "0+")
    ] = []
    """Each described group."""
