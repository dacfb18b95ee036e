"""SaslHandshake, API 17, versions 0-1. Generated from the definitions of Apache Kafka 4.2.1 by
`python -m tests.kafka.wire.generate`: do not edit. The descriptions are Kafka's, under the Apache
License 2.0; see NOTICE.
"""

from __future__ import annotations

from typing import Annotated

from frazil.kafka.wire.schema import Field, KafkaMessage, Versions


class SaslHandshakeRequest(KafkaMessage):
    """Request in versions 0-1.

    Version 1 supports SASL_AUTHENTICATE. NOTE: Version cannot be easily bumped due to incorrect
    client negotiation for clients <= 2.4. See https://issues.apache.org/jira/browse/KAFKA-9577
    """

    VERSIONS = Versions("SaslHandshakeRequest", "0-1", api_key=17)

    mechanism: Annotated[str, Field("string", "0+")] = ""
    """The SASL mechanism chosen by the client."""


class SaslHandshakeResponse(KafkaMessage):
    """Response in versions 0-1.

    Version 1 is the same as version 0. NOTE: Version cannot be easily bumped due to incorrect
    client negotiation for clients <= 2.4. See https://issues.apache.org/jira/browse/KAFKA-9577
    """

    VERSIONS = Versions("SaslHandshakeResponse", "0-1", api_key=17)

    error_code: Annotated[int, Field("int16", "0+")] = 0
    """The error code, or 0 if there was no error."""
    mechanisms: Annotated[list[str], Field("[]string", "0+")] = []
    """The mechanisms enabled in the server."""
