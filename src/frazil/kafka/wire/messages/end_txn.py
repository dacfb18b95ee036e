"""EndTxn, API 26, versions 0-5. Generated from the definitions of Apache Kafka 4.2.1 by `python -m
tests.kafka.wire.generate`: do not edit. The descriptions are Kafka's, under the Apache License 2.0;
see NOTICE.
"""

from __future__ import annotations

from typing import Annotated

from frazil.kafka.wire.schema import Field, KafkaMessage, Versions


class EndTxnRequest(KafkaMessage):
    """Request in versions 0-5, flexible in 3+.

    Version 1 is the same as version 0.

    Version 2 adds the support for new error code PRODUCER_FENCED.

    Version 3 enables flexible versions.

    Version 4 adds support for new error code TRANSACTION_ABORTABLE (KIP-890).

    Version 5 enables bumping epoch on every transaction (KIP-890 Part 2)
    """

    VERSIONS = Versions("EndTxnRequest", "0-5", flexible="3+", api_key=26)

    transactional_id: Annotated[str, Field("string", "0+")] = ""
    """The ID of the transaction to end."""
    producer_id: Annotated[int, Field("int64", "0+")] = 0
    """The producer ID."""
    producer_epoch: Annotated[int, Field("int16", "0+")] = 0
    """The current epoch associated with the producer."""
    committed: Annotated[bool, Field("bool", "0+")] = False
    """True if the transaction was committed, false if it was aborted."""


class EndTxnResponse(KafkaMessage):
    """Response in versions 0-5, flexible in 3+.

    Starting in version 1, on quota violation, brokers send out responses before throttling.

    Version 2 adds the support for new error code PRODUCER_FENCED.

    Version 3 enables flexible versions.

    Version 4 adds support for new error code TRANSACTION_ABORTABLE (KIP-890).

    Version 5 enables bumping epoch on every transaction (KIP-890 Part 2), so producer ID and
    epoch are included in the response.
    """

    VERSIONS = Versions("EndTxnResponse", "0-5", flexible="3+", api_key=26)

    throttle_time_ms: Annotated[int, Field("int32", "0+")] = 0
    """The duration in milliseconds for which the request was throttled due to a quota violation,
    or zero if the request did not violate any quota."""
    error_code: Annotated[int, Field("int16", "0+")] = 0
    """The error code, or 0 if there was no error."""
    producer_id: Annotated[int, Field("int64", "5+", ignorable=True)] = -1
    """The producer ID."""
    producer_epoch: Annotated[int, Field("int16", "5+", ignorable=True)] = -1
    """The current epoch associated with the producer."""
