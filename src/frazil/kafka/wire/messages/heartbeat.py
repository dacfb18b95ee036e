"""Heartbeat, API 12, versions 0-4. Generated from the definitions of Apache Kafka 4.2.1 by `python
-m tests.kafka.wire.generate`: do not edit. The descriptions are Kafka's, under the Apache License
2.0; see NOTICE.
"""

from __future__ import annotations

from typing import Annotated

from frazil.kafka.wire.schema import Field, KafkaMessage, Versions


class HeartbeatRequest(KafkaMessage):
    """Request in versions 0-4, flexible in 4+.

    Version 1 and version 2 are the same as version 0.

    Starting from version 3, we add a new field called groupInstanceId to indicate member
    identity across restarts.

    Version 4 is the first flexible version.
    """

    VERSIONS = Versions("HeartbeatRequest", "0-4", flexible="4+", api_key=12)

    group_id: Annotated[str, Field("string", "0+")] = ""
    """The group id."""
    generation_id: Annotated[int, Field("int32", "0+")] = 0
    """The generation of the group."""
    member_id: Annotated[str, Field("string", "0+")] = ""
    """The member ID."""
    group_instance_id: Annotated[str | None, Field("string", "3+", nullable="3+")] = None
    """The unique identifier of the consumer instance provided by end user."""


class HeartbeatResponse(KafkaMessage):
    """Response in versions 0-4, flexible in 4+.

    Version 1 adds throttle time.

    Starting in version 2, on quota violation, brokers send out responses before throttling.

    Starting from version 3, heartbeatRequest supports a new field called groupInstanceId to
    indicate member identity across restarts.

    Version 4 is the first flexible version.
    """

    VERSIONS = Versions("HeartbeatResponse", "0-4", flexible="4+", api_key=12)

    throttle_time_ms: Annotated[int, Field("int32", "1+", ignorable=True)] = 0
    """The duration in milliseconds for which the request was throttled due to a quota violation,
    or zero if the request did not violate any quota."""
    error_code: Annotated[int, Field("int16", "0+")] = 0
    """The error code, or 0 if there was no error."""
