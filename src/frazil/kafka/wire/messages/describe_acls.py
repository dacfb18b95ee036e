"""DescribeAcls, API 29, versions 1-3. Generated from the definitions of Apache Kafka 4.2.1 by
`python -m tests.kafka.wire.generate`: do not edit. The descriptions are Kafka's, under the Apache
License 2.0; see NOTICE.
"""

from __future__ import annotations

from typing import Annotated

from frazil.kafka.wire.schema import Field, KafkaMessage, Struct, Versions


class DescribeAclsRequest(KafkaMessage):
    """Request in versions 1-3, flexible in 2+.

    Version 0 was removed in Apache Kafka 4.0, Version 1 is the new baseline.

    Version 1 adds resource pattern type.

    Version 2 enables flexible versions.

    Version 3 adds user resource type.
    """

    VERSIONS = Versions("DescribeAclsRequest", "1-3", flexible="2+", api_key=29)

    resource_type_filter: Annotated[int, Field("int8", "0+")] = 0
    """The resource type."""
    resource_name_filter: Annotated[str | None, Field("string", "0+", nullable="0+")] = ""
    """The resource name, or null to match any resource name."""
    pattern_type_filter: Annotated[int, Field("int8", "1+")] = 3
    """The resource pattern to match."""
    principal_filter: Annotated[str | None, Field("string", "0+", nullable="0+")] = ""
    """The principal to match, or null to match any principal."""
    host_filter: Annotated[str | None, Field("string", "0+", nullable="0+")] = ""
    """The host to match, or null to match any host."""
    operation: Annotated[int, Field("int8", "0+")] = 0
    """The operation to match."""
    permission_type: Annotated[int, Field("int8", "0+")] = 0
    """The permission type to match."""


class DescribeAclsResponse(KafkaMessage):
    """Response in versions 1-3, flexible in 2+.

    Version 0 was removed in Apache Kafka 4.0, Version 1 is the new baseline.

    Version 1 adds PatternType.

    Starting in version 1, on quota violation, brokers send out responses before throttling.

    Version 2 enables flexible versions.

    Version 3 adds user resource type.
    """

    VERSIONS = Versions("DescribeAclsResponse", "1-3", flexible="2+", api_key=29)

    class AclDescription(Struct):
        """The ACLs."""

        principal: Annotated[str, Field("string", "0+")] = ""
        """The ACL principal."""
        host: Annotated[str, Field("string", "0+")] = ""
        """The ACL host."""
        operation: Annotated[int, Field("int8", "0+")] = 0
        """The ACL operation."""
        permission_type: Annotated[int, Field("int8", "0+")] = 0
        """The ACL permission type."""

    class DescribeAclsResource(Struct):
        """Each Resource that is referenced in an ACL."""

        resource_type: Annotated[int, Field("int8", "0+")] = 0
        """The resource type."""
        resource_name: Annotated[str, Field("string", "0+")] = ""
        """The resource name."""
        pattern_type: Annotated[int, Field("int8", "1+")] = 3
        """The resource pattern type."""
        acls: Annotated[
            list[DescribeAclsResponse.AclDescription], Field("[]AclDescription", "0+")
        ] = []
        """The ACLs."""

    throttle_time_ms: Annotated[int, Field("int32", "0+")] = 0
    """The duration in milliseconds for which the request was throttled due to a quota violation,
    or zero if the request did not violate any quota."""
    error_code: Annotated[int, Field("int16", "0+")] = 0
    """The error code, or 0 if there was no error."""
    error_message: Annotated[str | None, Field("string", "0+", nullable="0+")] = ""
    """The error message, or null if there was no error."""
    resources: Annotated[
        list[DescribeAclsResponse.DescribeAclsResource], Field("[]DescribeAclsResource", "0+")
    ] = []
    """Each Resource that is referenced in an ACL."""
