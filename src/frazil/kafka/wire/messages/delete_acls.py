"""DeleteAcls, API 31, versions 1-3. Generated from the definitions of Apache Kafka 4.2.1 by `python
-m tests.kafka.wire.generate`: do not edit. The descriptions are Kafka's, under the Apache License
2.0; see NOTICE.
"""

from __future__ import annotations

from typing import Annotated

from frazil.kafka.wire.schema import Field, KafkaMessage, Struct, Versions


class DeleteAclsRequest(KafkaMessage):
    """Request in versions 1-3, flexible in 2+.

    Version 0 was removed in Apache Kafka 4.0, Version 1 is the new baseline.

    Version 1 adds the pattern type.

    Version 2 enables flexible versions.

    Version 3 adds the user resource type.
    """

    VERSIONS = Versions("DeleteAclsRequest", "1-3", flexible="2+", api_key=31)

    class DeleteAclsFilter(Struct):
        """The filters to use when deleting ACLs."""

        resource_type_filter: Annotated[int, Field("int8", "0+")] = 0
        """The resource type."""
        resource_name_filter: Annotated[str | None, Field("string", "0+", nullable="0+")] = ""
        """The resource name, or null to match any resource name."""
        pattern_type_filter: Annotated[int, Field("int8", "1+")] = 3
        """The pattern type."""
        principal_filter: Annotated[str | None, Field("string", "0+", nullable="0+")] = ""
        """The principal filter, or null to accept all principals."""
        host_filter: Annotated[str | None, Field("string", "0+", nullable="0+")] = ""
        """The host filter, or null to accept all hosts."""
        operation: Annotated[int, Field("int8", "0+")] = 0
        """The ACL operation."""
        permission_type: Annotated[int, Field("int8", "0+")] = 0
        """The permission type."""

    filters: Annotated[
        list[DeleteAclsRequest.DeleteAclsFilter], Field("[]DeleteAclsFilter", "0+")
    ] = []
    """The filters to use when deleting ACLs."""


class DeleteAclsResponse(KafkaMessage):
    """Response in versions 1-3, flexible in 2+.

    Version 0 was removed in Apache Kafka 4.0, Version 1 is the new baseline.

    Version 1 adds the resource pattern type.

    Starting in version 1, on quota violation, brokers send out responses before throttling.

    Version 2 enables flexible versions.

    Version 3 adds the user resource type.
    """

    VERSIONS = Versions("DeleteAclsResponse", "1-3", flexible="2+", api_key=31)

    class DeleteAclsMatchingAcl(Struct):
        """The ACLs which matched this filter."""

        error_code: Annotated[int, Field("int16", "0+")] = 0
        """The deletion error code, or 0 if the deletion succeeded."""
        error_message: Annotated[str | None, Field("string", "0+", nullable="0+")] = ""
        """The deletion error message, or null if the deletion succeeded."""
        resource_type: Annotated[int, Field("int8", "0+")] = 0
        """The ACL resource type."""
        resource_name: Annotated[str, Field("string", "0+")] = ""
        """The ACL resource name."""
        pattern_type: Annotated[int, Field("int8", "1+")] = 3
        """The ACL resource pattern type."""
        principal: Annotated[str, Field("string", "0+")] = ""
        """The ACL principal."""
        host: Annotated[str, Field("string", "0+")] = ""
        """The ACL host."""
        operation: Annotated[int, Field("int8", "0+")] = 0
        """The ACL operation."""
        permission_type: Annotated[int, Field("int8", "0+")] = 0
        """The ACL permission type."""

    class DeleteAclsFilterResult(Struct):
        """The results for each filter."""

        error_code: Annotated[int, Field("int16", "0+")] = 0
        """The error code, or 0 if the filter succeeded."""
        error_message: Annotated[str | None, Field("string", "0+", nullable="0+")] = ""
        """The error message, or null if the filter succeeded."""
        matching_acls: Annotated[
            list[DeleteAclsResponse.DeleteAclsMatchingAcl], Field("[]DeleteAclsMatchingAcl", "0+")
        ] = []
        """The ACLs which matched this filter."""

    throttle_time_ms: Annotated[int, Field("int32", "0+")] = 0
    """The duration in milliseconds for which the request was throttled due to a quota violation,
    or zero if the request did not violate any quota."""
    filter_results: Annotated[
        list[DeleteAclsResponse.DeleteAclsFilterResult], Field("[]DeleteAclsFilterResult", "0+")
    ] = []
    """The results for each filter."""
