"""DescribeConfigs, API 32, versions 1-4. Generated from the definitions of Apache Kafka 4.2.1 by
`python -m tests.kafka.wire.generate`: do not edit. The descriptions are Kafka's, under the Apache
License 2.0; see NOTICE.
"""

from __future__ import annotations

from typing import Annotated

from frazil.kafka.wire.schema import Field, KafkaMessage, Struct, Versions


class DescribeConfigsRequest(KafkaMessage):
    """Request in versions 1-4, flexible in 4+.

    Version 0 was removed in Apache Kafka 4.0, Version 1 is the new baseline.

    Version 1 adds IncludeSynonyms and removes IsDefault.

    Version 2 is the same as version 1.

    Version 4 enables flexible versions.
    """

    VERSIONS = Versions("DescribeConfigsRequest", "1-4", flexible="4+", api_key=32)

    class DescribeConfigsResource(Struct):
        """The resources whose configurations we want to describe."""

        resource_type: Annotated[int, Field("int8", "0+")] = 0
        """The resource type."""
        resource_name: Annotated[str, Field("string", "0+")] = ""
        """The resource name."""
        configuration_keys: Annotated[list[str] | None, Field("[]string", "0+", nullable="0+")] = []
        """The configuration keys to list, or null to list all configuration keys."""

    resources: Annotated[
        list[DescribeConfigsRequest.DescribeConfigsResource],
        Field("[]DescribeConfigsResource", "0+"),
    ] = []
    """The resources whose configurations we want to describe."""
    include_synonyms: Annotated[bool, Field("bool", "1+")] = False
    """True if we should include all synonyms."""
    include_documentation: Annotated[bool, Field("bool", "3+")] = False
    """True if we should include configuration documentation."""


class DescribeConfigsResponse(KafkaMessage):
    """Response in versions 1-4, flexible in 4+.

    Version 0 was removed in Apache Kafka 4.0, Version 1 is the new baseline.

    Version 1 adds ConfigSource and the synonyms.

    Starting in version 2, on quota violation, brokers send out responses before throttling.

    Version 4 enables flexible versions.
    """

    VERSIONS = Versions("DescribeConfigsResponse", "1-4", flexible="4+", api_key=32)

    class DescribeConfigsSynonym(Struct):
        """The synonyms for this configuration key."""

        name: Annotated[str, Field("string", "1+")] = ""
        """The synonym name."""
        value: Annotated[str | None, Field("string", "1+", nullable="0+")] = ""
        """The synonym value."""
        source: Annotated[int, Field("int8", "1+")] = 0
        """The synonym source."""

    class DescribeConfigsResourceResult(Struct):
        """Each listed configuration."""

        name: Annotated[str, Field("string", "0+")] = ""
        """The configuration name."""
        value: Annotated[str | None, Field("string", "0+", nullable="0+")] = ""
        """The configuration value."""
        read_only: Annotated[bool, Field("bool", "0+")] = False
        """True if the configuration is read-only."""
        config_source: Annotated[int, Field("int8", "1+", ignorable=True)] = -1
        """The configuration source."""
        is_sensitive: Annotated[bool, Field("bool", "0+")] = False
        """True if this configuration is sensitive."""
        synonyms: Annotated[
            list[DescribeConfigsResponse.DescribeConfigsSynonym],
            Field("[]DescribeConfigsSynonym", "1+", ignorable=True),
        ] = []
        """The synonyms for this configuration key."""
        config_type: Annotated[int, Field("int8", "3+", ignorable=True)] = 0
        """The configuration data type. Type can be one of the following values - BOOLEAN,
        STRING, INT, SHORT, LONG, DOUBLE, LIST, CLASS, PASSWORD."""
        documentation: Annotated[
            str | None, Field("string", "3+", nullable="0+", ignorable=True)
        ] = ""
        """The configuration documentation."""

    class DescribeConfigsResult(Struct):
        """The results for each resource."""

        error_code: Annotated[int, Field("int16", "0+")] = 0
        """The error code, or 0 if we were able to successfully describe the configurations."""
        error_message: Annotated[str | None, Field("string", "0+", nullable="0+")] = ""
        """The error message, or null if we were able to successfully describe the
        configurations."""
        resource_type: Annotated[int, Field("int8", "0+")] = 0
        """The resource type."""
        resource_name: Annotated[str, Field("string", "0+")] = ""
        """The resource name."""
        configs: Annotated[
            list[DescribeConfigsResponse.DescribeConfigsResourceResult],
            Field("[]DescribeConfigsResourceResult", "0+"),
        ] = []
        """Each listed configuration."""

    throttle_time_ms: Annotated[int, Field("int32", "0+")] = 0
    """The duration in milliseconds for which the request was throttled due to a quota violation,
    or zero if the request did not violate any quota."""
    results: Annotated[
        list[DescribeConfigsResponse.DescribeConfigsResult], Field("[]DescribeConfigsResult", "0+")
    ] = []
    """The results for each resource."""
