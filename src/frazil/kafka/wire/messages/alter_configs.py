"""AlterConfigs, API 33, versions 0-2. Generated from the definitions of Apache Kafka 4.2.1 by
`python -m tests.kafka.wire.generate`: do not edit. The descriptions are Kafka's, under the Apache
License 2.0; see NOTICE.
"""

from __future__ import annotations

from typing import Annotated

from frazil.kafka.wire.schema import Field, KafkaMessage, Struct, Versions


class AlterConfigsRequest(KafkaMessage):
    """Request in versions 0-2, flexible in 2+.

    Version 1 is the same as version 0.

    Version 2 enables flexible versions.
    """

    VERSIONS = Versions("AlterConfigsRequest", "0-2", flexible="2+", api_key=33)

    class AlterableConfig(Struct):
        """The configurations."""

        name: Annotated[str, Field("string", "0+")] = ""
        """The configuration key name."""
        value: Annotated[str | None, Field("string", "0+", nullable="0+")] = ""
        """The value to set for the configuration key."""

    class AlterConfigsResource(Struct):
        """The updates for each resource."""

        resource_type: Annotated[int, Field("int8", "0+")] = 0
        """The resource type."""
        resource_name: Annotated[str, Field("string", "0+")] = ""
        """The resource name."""
        configs: Annotated[
            list[AlterConfigsRequest.AlterableConfig], Field("[]AlterableConfig", "0+")
        ] = []
        """The configurations."""

    resources: Annotated[
        list[AlterConfigsRequest.AlterConfigsResource], Field("[]AlterConfigsResource", "0+")
    ] = []
    """The updates for each resource."""
    validate_only: Annotated[bool, Field("bool", "0+")] = False
    """True if we should validate the request, but not change the configurations."""


class AlterConfigsResponse(KafkaMessage):
    """Response in versions 0-2, flexible in 2+.

    Starting in version 1, on quota violation brokers send out responses before throttling.

    Version 2 enables flexible versions.
    """

    VERSIONS = Versions("AlterConfigsResponse", "0-2", flexible="2+", api_key=33)

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
        list[AlterConfigsResponse.AlterConfigsResourceResponse],
        Field("[]AlterConfigsResourceResponse", "0+"),
    ] = []
    """The responses for each resource."""
