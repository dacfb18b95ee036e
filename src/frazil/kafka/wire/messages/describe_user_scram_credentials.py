"""DescribeUserScramCredentials, API 50, versions 0. Generated from the definitions of Apache Kafka
4.2.1 by `python -m tests.kafka.wire.generate`: do not edit. The descriptions are Kafka's, under the
Apache License 2.0; see NOTICE.
"""

from __future__ import annotations

from typing import Annotated

from frazil.kafka.wire.schema import Field, KafkaMessage, Struct, Versions


class DescribeUserScramCredentialsRequest(KafkaMessage):
    """Request in versions 0, flexible in 0+."""

    VERSIONS = Versions("DescribeUserScramCredentialsRequest", "0", flexible="0+", api_key=50)

    class UserName(Struct):
        """The users to describe, or null/empty to describe all users."""

        name: Annotated[str, Field("string", "0+")] = ""
        """The user name."""

    users: Annotated[
        list[DescribeUserScramCredentialsRequest.UserName] | None,
        Field("[]UserName", "0+", nullable="0+"),
    ] = []
    """The users to describe, or null/empty to describe all users."""


class DescribeUserScramCredentialsResponse(KafkaMessage):
    """Response in versions 0, flexible in 0+."""

    VERSIONS = Versions("DescribeUserScramCredentialsResponse", "0", flexible="0+", api_key=50)

    class CredentialInfo(Struct):
        """The mechanism and related information associated with the user's SCRAM credentials."""

        mechanism: Annotated[int, Field("int8", "0+")] = 0
        """The SCRAM mechanism."""
        iterations: Annotated[int, Field("int32", "0+")] = 0
        """The number of iterations used in the SCRAM credential."""

    class DescribeUserScramCredentialsResult(Struct):
        """The results for descriptions, one per user."""

        user: Annotated[str, Field("string", "0+")] = ""
        """The user name."""
        error_code: Annotated[int, Field("int16", "0+")] = 0
        """The user-level error code."""
        error_message: Annotated[str | None, Field("string", "0+", nullable="0+")] = ""
        """The user-level error message, if any."""
        credential_infos: Annotated[
            list[DescribeUserScramCredentialsResponse.CredentialInfo],
            Field("[]CredentialInfo", "0+"),
        ] = []
        """The mechanism and related information associated with the user's SCRAM credentials."""

    throttle_time_ms: Annotated[int, Field("int32", "0+")] = 0
    """The duration in milliseconds for which the request was throttled due to a quota violation,
    or zero if the request did not violate any quota."""
    error_code: Annotated[int, Field("int16", "0+")] = 0
    """The message-level error code, 0 except for user authorization or infrastructure issues."""
    error_message: Annotated[str | None, Field("string", "0+", nullable="0+")] = ""
    """The message-level error message, if any."""
    results: Annotated[
        list[DescribeUserScramCredentialsResponse.DescribeUserScramCredentialsResult],
        Field("[]DescribeUserScramCredentialsResult", "0+"),
    ] = []
    """The results for descriptions, one per user."""
