"""FindCoordinator, API 10, versions 0-6. Generated from the definitions of Apache Kafka 4.2.1 by
`python -m tests.kafka.wire.generate`: do not edit. The descriptions are Kafka's, under the Apache
License 2.0; see NOTICE.
"""

from __future__ import annotations

from typing import Annotated

from frazil.kafka.wire.schema import Field, KafkaMessage, Struct, Versions


class FindCoordinatorRequest(KafkaMessage):
    """Request in versions 0-6, flexible in 3+.

    Version 1 adds KeyType.

    Version 2 is the same as version 1.

    Version 3 is the first flexible version.

    Version 4 adds support for batching via CoordinatorKeys (KIP-699)

    Version 5 adds support for new error code TRANSACTION_ABORTABLE (KIP-890).

    Version 6 adds support for share groups (KIP-932). For key type SHARE (2), the coordinator
    key format is "groupId:topicId:partition".
    """

    VERSIONS = Versions("FindCoordinatorRequest", "0-6", flexible="3+", api_key=10)

    key: Annotated[str, Field("string", "0-3")] = ""
    """The coordinator key."""
    key_type: Annotated[int, Field("int8", "1+")] = 0
    """The coordinator key type. (group, transaction, share)."""
    coordinator_keys: Annotated[list[str], Field("[]string", "4+")] = []
    """The coordinator keys."""


class FindCoordinatorResponse(KafkaMessage):
    """Response in versions 0-6, flexible in 3+.

    Version 1 adds throttle time and error messages.

    Starting in version 2, on quota violation, brokers send out responses before throttling.

    Version 3 is the first flexible version.

    Version 4 adds support for batching via Coordinators (KIP-699)

    Version 5 adds support for new error code TRANSACTION_ABORTABLE (KIP-890).

    Version 6 adds support for share groups (KIP-932).
    """

    VERSIONS = Versions("FindCoordinatorResponse", "0-6", flexible="3+", api_key=10)

    class Coordinator(Struct):
        """Each coordinator result in the response."""

        key: Annotated[str, Field("string", "4+")] = ""
        """The coordinator key."""
        node_id: Annotated[int, Field("int32", "4+")] = 0
        """The node id."""
        host: Annotated[str, Field("string", "4+")] = ""
        """The host name."""
        port: Annotated[int, Field("int32", "4+")] = 0
        """The port."""
        error_code: Annotated[int, Field("int16", "4+")] = 0
        """The error code, or 0 if there was no error."""
        error_message: Annotated[
            str | None, Field("string", "4+", nullable="4+", ignorable=True)
        ] = ""
        """The error message, or null if there was no error."""

    throttle_time_ms: Annotated[int, Field("int32", "1+", ignorable=True)] = 0
    """The duration in milliseconds for which the request was throttled due to a quota violation,
    or zero if the request did not violate any quota."""
    error_code: Annotated[int, Field("int16", "0-3")] = 0
    """The error code, or 0 if there was no error."""
    error_message: Annotated[str | None, Field("string", "1-3", nullable="1-3", ignorable=True)] = (
        ""
    )
    """The error message, or null if there was no error."""
    node_id: Annotated[int, Field("int32", "0-3")] = 0
    """The node id."""
    host: Annotated[str, Field("string", "0-3")] = ""
    """The host name."""
    port: Annotated[int, Field("int32", "0-3")] = 0
    """The port."""
    coordinators: Annotated[
        list[FindCoordinatorResponse.Coordinator], Field("[]Coordinator", "4+")
    ] = []
    """Each coordinator result in the response."""
