"""ListGroups, API 16, versions 0-5. Generated from the definitions of Apache Kafka 4.2.1 by `python
-m tests.kafka.wire.generate`: do not edit. The descriptions are Kafka's, under the Apache License
2.0; see NOTICE.
"""

from __future__ import annotations

from typing import Annotated

from frazil.kafka.wire.schema import Field, KafkaMessage, Struct, Versions


class ListGroupsRequest(KafkaMessage):
    """Request in versions 0-5, flexible in 3+.

    Version 1 and 2 are the same as version 0.

    Version 3 is the first flexible version.

    Version 4 adds the StatesFilter field (KIP-518).

    Version 5 adds the TypesFilter field (KIP-848).
    """

    VERSIONS = Versions("ListGroupsRequest", "0-5", flexible="3+", api_key=16)

    states_filter: Annotated[list[str], Field("[]string", "4+")] = []
    """The states of the groups we want to list. If empty, all groups are returned with their
    state."""
    types_filter: Annotated[list[str], Field("[]string", "5+")] = []
    """The types of the groups we want to list. If empty, all groups are returned with their
    type."""


class ListGroupsResponse(KafkaMessage):
    """Response in versions 0-5, flexible in 3+.

    Version 1 adds the throttle time.

    Starting in version 2, on quota violation, brokers send out responses before throttling.

    Version 3 is the first flexible version.

    Version 4 adds the GroupState field (KIP-518).

    Version 5 adds the GroupType field (KIP-848).
    """

    VERSIONS = Versions("ListGroupsResponse", "0-5", flexible="3+", api_key=16)

    class ListedGroup(Struct):
        """Each group in the response."""

        group_id: Annotated[str, Field("string", "0+")] = ""
        """The group ID."""
        protocol_type: Annotated[str, Field("string", "0+")] = ""
        """The group protocol type."""
        group_state: Annotated[str, Field("string", "4+", ignorable=True)] = ""
        """The group state name."""
        group_type: Annotated[str, Field("string", "5+", ignorable=True)] = ""
        """The group type name."""

    throttle_time_ms: Annotated[int, Field("int32", "1+", ignorable=True)] = 0
    """The duration in milliseconds for which the request was throttled due to a quota violation,
    or zero if the request did not violate any quota."""
    error_code: Annotated[int, Field("int16", "0+")] = 0
    """The error code, or 0 if there was no error."""
    groups: Annotated[list[ListGroupsResponse.ListedGroup], Field("[]ListedGroup", "0+")] = []
    """Each group in the response."""
