"""DeleteGroups, API 42, versions 0-2. Generated from the definitions of Apache Kafka 4.2.1 by
`python -m tests.kafka.wire.generate`: do not edit. The descriptions are Kafka's, under the Apache
License 2.0; see NOTICE.
"""

from __future__ import annotations

from typing import Annotated

from frazil.kafka.wire.schema import Field, KafkaMessage, Struct, Versions


class DeleteGroupsRequest(KafkaMessage):
    """Request in versions 0-2, flexible in 2+.

    Version 1 is the same as version 0.

    Version 2 is the first flexible version.
    """

    VERSIONS = Versions("DeleteGroupsRequest", "0-2", flexible="2+", api_key=42)

    groups_names: Annotated[list[str], Field("[]string", "0+")] = []
    """The group names to delete."""


class DeleteGroupsResponse(KafkaMessage):
    """Response in versions 0-2, flexible in 2+.

    Starting in version 1, on quota violation, brokers send out responses before throttling.

    Version 2 is the first flexible version.
    """

    VERSIONS = Versions("DeleteGroupsResponse", "0-2", flexible="2+", api_key=42)

    class DeletableGroupResult(Struct):
        """The deletion results."""

        group_id: Annotated[str, Field("string", "0+")] = ""
        """The group id."""
        error_code: Annotated[int, Field("int16", "0+")] = 0
        """The deletion error, or 0 if the deletion succeeded."""

    throttle_time_ms: Annotated[int, Field("int32", "0+")] = 0
    """The duration in milliseconds for which the request was throttled due to a quota violation,
    or zero if the request did not violate any quota."""
    results: Annotated[
        list[DeleteGroupsResponse.DeletableGroupResult], Field("[]DeletableGroupResult", "0+")
    ] = []
    """The deletion results."""
