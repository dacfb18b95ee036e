"""AddOffsetsToTxn, API 25, versions 0-4. Generated from the definitions of Apache Kafka 4.2.1 by
`python -m tests.kafka.wire.generate`: do not edit. The descriptions are Kafka's, under the Apache
License 2.0; see NOTICE.
"""

from __future__ import annotations

from typing import Annotated

from frazil.kafka.wire.schema import Field, KafkaMessage, Versions


class AddOffsetsToTxnRequest(KafkaMessage):
    """Request in versions 0-4, flexible in 3+.

    Version 1 is the same as version 0.

    Version 2 adds the support for new error code PRODUCER_FENCED.

    Version 3 enables flexible versions.

    Version 4 adds support for new error code TRANSACTION_ABORTABLE (KIP-890).
    """

    VERSIONS = Versions("AddOffsetsToTxnRequest", "0-4", flexible="3+", api_key=25)

    transactional_id: Annotated[str, Field("string", "0+")] = ""
    """The transactional id corresponding to the transaction."""
    producer_id: Annotated[int, Field("int64", "0+")] = 0
    """Current producer id in use by the transactional id."""
    producer_epoch: Annotated[int, Field("int16", "0+")] = 0
    """Current epoch associated with the producer id."""
    group_id: Annotated[str, Field("string", "0+")] = ""
    """The unique group identifier."""


class AddOffsetsToTxnResponse(KafkaMessage):
    """Response in versions 0-4, flexible in 3+.

    Starting in version 1, on quota violation brokers send out responses before throttling.

    Version 2 adds the support for new error code PRODUCER_FENCED.

    Version 3 enables flexible versions.

    Version 4 adds support for new error code TRANSACTION_ABORTABLE (KIP-890).
    """

    VERSIONS = Versions("AddOffsetsToTxnResponse", "0-4", flexible="3+", api_key=25)

    throttle_time_ms: Annotated[int, Field("int32", "0+")] = 0
    """Duration in milliseconds for which the request was throttled due to a quota violation, or
    zero if the request did not violate any quota."""
    error_code: Annotated[int, Field("int16", "0+")] = 0
    """The response error code, or 0 if there was no error."""
