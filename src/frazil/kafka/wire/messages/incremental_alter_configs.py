"""IncrementalAlterConfigs, API 44, versions 0-1. Generated from the definitions of Apache Kafka
4.2.1 by `python -m tests.kafka.wire.generate`: do not edit. The descriptions are Kafka's, under the
Apache License 2.0; see NOTICE.
"""

from __future__ import annotations

from typing import Annotated

from frazil.kafka.wire.schema import Field, KafkaMessage, Struct, Versions


class IncrementalAlterConfigsRequest(KafkaMessage):
    """Request in versions 0-1, flexible in 1+.

    Version 1 is the first flexible version.
    """

    VERSIONS = Versions("IncrementalAlterConfigsRequest", "0-1", flexible="1+", api_key=44)

    class AlterableConfig(Struct):
        """The configurations."""

        name: Annotated[str, Field("string", "0+")] = ""
        """The configuration key name."""
        config_operation: Annotated[int, Field("int8", "0+")] = 0
        """The type (Set, Delete, Append, Subtract) of operation."""
        value: Annotated[str | None, Field("string", "0+", nullable="0+")] = ""
        """The value to set for the configuration key."""

    class AlterConfigsResource(Struct):
        """The incremental updates for each resource."""

        resource_type: Annotated[int, Field("int8", "0+")] = 0
        """The resource type."""
        resource_name: Annotated[str, Field("string", "0+")] = ""
        """The resource name."""
        configs: Annotated[
            list[IncrementalAlterConfigsRequest.AlterableConfig], Field("[]AlterableConfig", "0+")
        ] = []
        """The configurations."""

    resources: Annotated[
        list[IncrementalAlterConfigsRequest.AlterConfigsResource],
        Field("[]AlterConfigsResource", "0+"),
    ] = []
    """The incremental updates for each resource."""
    validate_only: Annotated[bool, Field("bool", "0+")] = False
    """True if we should validate the request, but not change the configurations."""


class IncrementalAlterConfigsResponse(KafkaMessage):
    """Response in versions 0-1, flexible in 1+.

    Version 1 is the first flexible version.
    """

    VERSIONS = Versions("IncrementalAlterConfigsResponse", "0-1", flexible="1+", api_key=44)

    class AlterConfigsResourceResponse(Struct):
        """The responses for each resource."""

        error_code: Annotated[int, Field("int16", "0+")] = 0
        """The resource error code."""
        error_message: Annotated[str | None, Field("string", "0+", nullable="0+")] = ""
        """The resource error message, or null if there was no error."""
        resource_type: Annotated[int, Field("int8", "0+")] = 0
        """The resource type."""
        resource_name: Annotated[str, Field("string", "0+")] = ""
        """The resource name."""

    throttle_time_ms: Annotated[int, Field("int32", "0+")] = 0
    """Duration in milliseconds for which the request was throttled due to a quota violation, or
    zero if the request did not violate any quota."""
    responses: Annotated[
        list[IncrementalAlterConfigsResponse.AlterConfigsResourceResponse],
        Field("[]AlterConfigsResourceResponse", "0+"),
    ] = []
    """The responses for each resource."""
