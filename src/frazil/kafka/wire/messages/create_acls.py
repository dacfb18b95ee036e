"""CreateAcls, API 30, versions 1-3. Generated from the definitions of Apache Kafka 4.2.1 by `python
-m tests.kafka.wire.generate`: do not edit. The descriptions are Kafka's, under the Apache License
2.0; see NOTICE.
"""

from __future__ import annotations

from typing import Annotated

from frazil.kafka.wire.schema import Field, KafkaMessage, Struct, Versions


class CreateAclsRequest(KafkaMessage):
    """Request in versions 1-3, flexible in 2+.

    Version 0 was removed in Apache Kafka 4.0, Version 1 is the new baseline.

    Version 1 adds resource pattern type.

    Version 2 enables flexible versions.

    Version 3 adds user resource type.
    """

    VERSIONS = Versions("CreateAclsRequest", "1-3", flexible="2+", api_key=30)

    class AclCreation(Struct):
        """The ACLs that we want to create."""

        resource_type: Annotated[int, Field("int8", "0+")] = 0
        """The type of the resource."""
        resource_name: Annotated[str, Field("string", "0+")] = ""
        """The resource name for the ACL."""
        resource_pattern_type: Annotated[int, Field("int8", "1+")] = 3
        """The pattern type for the ACL."""
        principal: Annotated[str, Field("string", "0+")] = ""
        """The principal for the ACL."""
        host: Annotated[str, Field("string", "0+")] = ""
        """The host for the ACL."""
        operation: Annotated[int, Field("int8", "0+")] = 0
        """The operation type for the ACL (read, write, etc.)."""
        permission_type: Annotated[int, Field("int8", "0+")] = 0
        """The permission type for the ACL (allow, deny, etc.)."""

    creations: Annotated[list[CreateAclsRequest.AclCreation], Field("[]AclCreation", "0+")] = []
    """The ACLs that we want to create."""


class CreateAclsResponse(KafkaMessage):
    """Response in versions 1-3, flexible in 2+.

    Version 0 was removed in Apache Kafka 4.0, Version 1 is the new baseline.

    Starting in version 1, on quota violation, brokers send out responses before throttling.

    Version 2 enables flexible versions.

    Version 3 adds user resource type.
    """

    VERSIONS = Versions("CreateAclsResponse", "1-3", flexible="2+", api_key=30)

    class AclCreationResult(Struct):
        """The results for each ACL creation."""

        error_code: Annotated[int, Field("int16", "0+")] = 0
        """The result error, or zero if there was no error."""
        error_message: Annotated[str | None, Field("string", "0+", nullable="0+")] = ""
        """The result message, or null if there was no error."""

    throttle_time_ms: Annotated[int, Field("int32", "0+")] = 0
    """The duration in milliseconds for which the request was throttled due to a quota violation,
    or zero if the request did not violate any quota."""
    results: Annotated[
        list[CreateAclsResponse.AclCreationResult], Field("[]AclCreationResult", "0+")
    ] = []
    """The results for each ACL creation."""
