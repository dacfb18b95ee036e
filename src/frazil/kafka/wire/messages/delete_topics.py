"""DeleteTopics, API 20, versions 1-6. Generated from the definitions of Apache Kafka 4.2.1 by
`python -m tests.kafka.wire.generate`: do not edit. The descriptions are Kafka's, under the Apache
License 2.0; see NOTICE.
"""

from __future__ import annotations

from typing import Annotated

from frazil.kafka.wire.schema import UUID_ZERO, Field, KafkaMessage, Struct, Versions


class DeleteTopicsRequest(KafkaMessage):
    """Request in versions 1-6, flexible in 4+.

    Version 0 was removed in Apache Kafka 4.0, Version 1 is the new baseline. Versions 0, 1, 2,
    and 3 are the same.

    Version 4 is the first flexible version.

    Version 5 adds ErrorMessage in the response and may return a THROTTLING_QUOTA_EXCEEDED error
    in the response if the topics deletion is throttled (KIP-599).

    Version 6 reorganizes topics, adds topic IDs and allows topic names to be null.
    """

    VERSIONS = Versions("DeleteTopicsRequest", "1-6", flexible="4+", api_key=20)

    class DeleteTopicState(Struct):
        """The name or topic ID of the topic."""

        name: Annotated[str | None, Field("string", "6+", nullable="6+")] = None
        """The topic name."""
        topic_id: Annotated[bytes, Field("uuid", "6+")] = UUID_ZERO
        """The unique topic ID."""

    topics: Annotated[
        list[DeleteTopicsRequest.DeleteTopicState], Field("[]DeleteTopicState", "6+")
    ] = []
    """The name or topic ID of the topic."""
    topic_names: Annotated[list[str], Field("[]string", "0-5", ignorable=True)] = []
    """The names of the topics to delete."""
    timeout_ms: Annotated[int, Field("int32", "0+")] = 0
    """The length of time in milliseconds to wait for the deletions to complete."""


class DeleteTopicsResponse(KafkaMessage):
    """Response in versions 1-6, flexible in 4+.

    Version 0 was removed in Apache Kafka 4.0, Version 1 is the new baseline.

    Version 1 adds the throttle time.

    Starting in version 2, on quota violation, brokers send out responses before throttling.

    Starting in version 3, a TOPIC_DELETION_DISABLED error code may be returned.

    Version 4 is the first flexible version.

    Version 5 adds ErrorMessage in the response and may return a THROTTLING_QUOTA_EXCEEDED error
    in the response if the topics deletion is throttled (KIP-599).

    Version 6 adds topic ID to responses. An UNSUPPORTED_VERSION error code will be returned when
    attempting to delete using topic IDs when IBP < 2.8. UNKNOWN_TOPIC_ID error code will be
    returned when IBP is at least 2.8, but the topic ID was not found.
    """

    VERSIONS = Versions("DeleteTopicsResponse", "1-6", flexible="4+", api_key=20)

    class DeletableTopicResult(Struct):
        """The results for each topic we tried to delete."""

        name: Annotated[str | None, Field("string", "0+", nullable="6+")] = ""
        """The topic name."""
        topic_id: Annotated[bytes, Field("uuid", "6+", ignorable=True)] = UUID_ZERO
        """The unique topic ID."""
        error_code: Annotated[int, Field("int16", "0+")] = 0
        """The deletion error, or 0 if the deletion succeeded."""
        error_message: Annotated[
            str | None, Field("string", "5+", nullable="5+", ignorable=True)
        ] = None
        """The error message, or null if there was no error."""

    throttle_time_ms: Annotated[int, Field("int32", "1+", ignorable=True)] = 0
    """The duration in milliseconds for which the request was throttled due to a quota violation,
    or zero if the request did not violate any quota."""
    responses: Annotated[
        list[DeleteTopicsResponse.DeletableTopicResult], Field("[]DeletableTopicResult", "0+")
    ] = []
    """The results for each topic we tried to delete."""
