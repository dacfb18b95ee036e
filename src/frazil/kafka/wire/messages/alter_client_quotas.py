"""AlterClientQuotas, API 49, versions 0-1. Generated from the definitions of Apache Kafka 4.2.1 by
`python -m tests.kafka.wire.generate`: do not edit. The descriptions are Kafka's, under the Apache
License 2.0; see NOTICE.
"""

from __future__ import annotations

from typing import Annotated

from frazil.kafka.wire.schema import Field, KafkaMessage, Struct, Versions


class AlterClientQuotasRequest(KafkaMessage):
    """Request in versions 0-1, flexible in 1+."""

    VERSIONS = Versions("AlterClientQuotasRequest", "0-1", flexible="1+", api_key=49)

    class EntityData(Struct):
        """The quota entity to alter."""

        entity_type: Annotated[str, Field("string", "0+")] = ""
        """The entity type."""
        entity_name: Annotated[str | None, Field("string", "0+", nullable="0+")] = ""
        """The name of the entity, or null if the default."""

    class OpData(Struct):
        """An individual quota configuration entry to alter."""

        key: Annotated[str, Field("string", "0+")] = ""
        """The quota configuration key."""
        value: Annotated[float, Field("float64", "0+")] = 0.0
        """The value to set, otherwise ignored if the value is to be removed."""
        remove: Annotated[bool, Field("bool", "0+")] = False
        """Whether the quota configuration value should be removed, otherwise set."""

    class EntryData(Struct):
        """The quota configuration entries to alter."""

        entity: Annotated[
            list[AlterClientQuotasRequest.EntityData], Field("[]EntityData", "0+")
        ] = []
        """The quota entity to alter."""
        ops: Annotated[list[AlterClientQuotasRequest.OpData], Field("[]OpData", "0+")] = []
        """An individual quota configuration entry to alter."""

    entries: Annotated[list[AlterClientQuotasRequest.EntryData], Field("[]EntryData", "0+")] = []
    """The quota configuration entries to alter."""
    validate_only: Annotated[bool, Field("bool", "0+")] = False
    """Whether the alteration should be validated, but not performed."""


class AlterClientQuotasResponse(KafkaMessage):
    """Response in versions 0-1, flexible in 1+.

    Version 1 enables flexible versions.
    """

    VERSIONS = Versions("AlterClientQuotasResponse", "0-1", flexible="1+", api_key=49)

    class EntityData(Struct):
        """The quota entity to alter."""

        entity_type: Annotated[str, Field("string", "0+")] = ""
        """The entity type."""
        entity_name: Annotated[str | None, Field("string", "0+", nullable="0+")] = ""
        """The name of the entity, or null if the default."""

    class EntryData(Struct):
        """The quota configuration entries to alter."""

        error_code: Annotated[int, Field("int16", "0+")] = 0
        """The error code, or `0` if the quota alteration succeeded."""
        error_message: Annotated[str | None, Field("string", "0+", nullable="0+")] = ""
        """The error message, or `null` if the quota alteration succeeded."""
        entity: Annotated[
            list[AlterClientQuotasResponse.EntityData], Field("[]EntityData", "0+")
        ] = []
        """The quota entity to alter."""

    throttle_time_ms: Annotated[int, Field("int32", "0+")] = 0
    """The duration in milliseconds for which the request was throttled due to a quota violation,
    or zero if the request did not violate any quota."""
    entries: Annotated[list[AlterClientQuotasResponse.EntryData], Field("[]EntryData", "0+")] = []
    """The quota configuration entries to alter."""
