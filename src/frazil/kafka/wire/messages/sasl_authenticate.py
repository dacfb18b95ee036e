"""SaslAuthenticate, API 36, versions 0-2. Generated from the definitions of Apache Kafka 4.2.1 by
`python -m tests.kafka.wire.generate`: do not edit. The descriptions are Kafka's, under the Apache
License 2.0; see NOTICE.
"""

from __future__ import annotations

from typing import Annotated

from frazil.kafka.wire.schema import Field, KafkaMessage, Versions


class SaslAuthenticateRequest(KafkaMessage):
    """Request in versions 0-2, flexible in 2+.

    Version 1 is the same as version 0.

    Version 2 adds flexible version support
    """

    VERSIONS = Versions("SaslAuthenticateRequest", "0-2", flexible="2+", api_key=36)

    auth_bytes: Annotated[bytes, Field("bytes", "0+")] = b""
    """The SASL authentication bytes from the client, as defined by the SASL mechanism."""


class SaslAuthenticateResponse(KafkaMessage):
    """Response in versions 0-2, flexible in 2+.

    Version 1 adds the session lifetime.

    Version 2 adds flexible version support
    """

    VERSIONS = Versions("SaslAuthenticateResponse", "0-2", flexible="2+", api_key=36)

    error_code: Annotated[int, Field("int16", "0+")] = 0
    """The error code, or 0 if there was no error."""
    error_message: Annotated[str | None, Field("string", "0+", nullable="0+")] = ""
    """The error message, or null if there was no error."""
    auth_bytes: Annotated[bytes, Field("bytes", "0+")] = b""
    """The SASL authentication bytes from the server, as defined by the SASL mechanism."""
    session_lifetime_ms: Annotated[int, Field("int64", "1+", ignorable=True)] = 0
    """Number of milliseconds after which only re-authentication over the existing connection to
    create a new session can occur."""
