"""DescribeClientQuotas, API 48, versions 0-1. Generated from the definitions of Apache Kafka 4.2.1
by `python -m tests.kafka.wire.generate`: do not edit. The descriptions are Kafka's, under the
Apache License 2.0; see NOTICE.
"""

from __future__ import annotations

from typing import Annotated

from frazil.kafka.wire.schema import Field, KafkaMessage, Struct, Versions


class DescribeClientQuotasRequest(KafkaMessage):
    """Request in versions 0-1, flexible in 1+.

    Version 1 enables flexible versions.
    """

    VERSIONS = Versions("DescribeClientQuotasRequest", "0-1", flexible="1+", api_key=48)

    class ComponentData(Struct):
        """Filter components to apply to quota entities."""

        entity_type: Annotated[str, Field("string", "0+")] = ""
        """The entity type that the filter component applies to."""
        match_type: Annotated[int, Field("int8", "0+")] = 0
        """How to match the entity {0 = exact name, 1 = default name, 2 = any specified name}."""
        match: Annotated[str | None, Field("string", "0+", nullable="0+")] = ""
        """The string to match against, or null if unused for the match type."""

    components: Annotated[
        list[DescribeClientQuotasRequest.ComponentData], Field("[]ComponentData", "0+")
    ] = []
    """Filter components to apply to quota entities."""
    strict: Annotated[bool, Field("bool", "0+")] = False
    """Whether the match is strict, i.e. should exclude entities with unspecified entity types."""


class DescribeClientQuotasResponse(KafkaMessage):
    """Response in versions 0-1, flexible in 1+.

    Version 1 enables flexible versions.
    """

    VERSIONS = Versions("DescribeClientQuotasResponse", "0-1", flexible="1+", api_key=48)

    class EntityData(Struct):
        """The quota entity description."""

        entity_type: Annotated[str, Field("string", "0+")] = ""
        """The entity type."""
        entity_name: Annotated[str | None, Field("string", "0+", nullable="0+")] = ""
        """The entity name, or null if the default."""

    class ValueData(Struct):
        """The quota values for the entity."""

        key: Annotated[str, Field("string", "0+")] = ""
        """The quota configuration key."""
        value: Annotated[float, Field("float64", "0+")] = 0.0
        """The quota configuration value."""

    class EntryData(Struct):
        """A result entry."""

        entity: Annotated[
            list[DescribeClientQuotasResponse.EntityData], Field("[]EntityData", "0+")
        ] = []
        """The quota entity description."""
        values: Annotated[
            list[DescribeClientQuotasResponse.ValueData], Field("[]ValueData", "0+")
        ] = []
        """The quota values for the entity."""

    throttle_time_ms: Annotated[int, Field("int32", "0+")] = 0
    """The duration in milliseconds for which the request was throttled due to a quota violation,
    or zero if the request did not violate any quota."""
    error_code: Annotated[int, Field("int16", "0+")] = 0
    """The error code, or `0` if the quota description succeeded."""
    error_message: Annotated[str | None, Field("string", "0+", nullable="0+")] = ""
    """The error message, or `null` if the quota description succeeded."""
    entries: Annotated[
        list[DescribeClientQuotasResponse.EntryData] | None,
        Field("[]EntryData", "0+", nullable="0+"),
    ] = []
    """A result entry."""
