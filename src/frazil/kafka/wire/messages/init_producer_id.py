"""InitProducerId, API 22, versions 0-6. Generated from the definitions of Apache Kafka 4.2.1 by
`python -m tests.kafka.wire.generate`: do not edit. The descriptions are Kafka's, under the Apache
License 2.0; see NOTICE.
"""

from __future__ import annotations

from typing import Annotated

from frazil.kafka.wire.schema import Field, KafkaMessage, Versions


class InitProducerIdRequest(KafkaMessage):
    """Request in versions 0-6, flexible in 2+.

    Version 1 is the same as version 0.

    Version 2 is the first flexible version.

    Version 3 adds ProducerId and ProducerEpoch, allowing producers to try to resume after an
    INVALID_PRODUCER_EPOCH error

    Version 4 adds the support for new error code PRODUCER_FENCED.

    Version 5 adds support for new error code TRANSACTION_ABORTABLE (KIP-890).

    Version 6 adds support for 2PC (KIP-939).
    """

    VERSIONS = Versions("InitProducerIdRequest", "0-6", flexible="2+", api_key=22)

    transactional_id: Annotated[str | None, Field("string", "0+", nullable="0+")] = ""
    """The transactional id, or null if the producer is not transactional."""
    transaction_timeout_ms: Annotated[int, Field("int32", "0+")] = 0
    """The time in ms to wait before aborting idle transactions sent by this producer. This is
    only relevant if a TransactionalId has been defined."""
    producer_id: Annotated[int, Field("int64", "3+")] = -1
    """The producer id. This is used to disambiguate requests if a transactional id is reused
    following its expiration."""
    producer_epoch: Annotated[int, Field("int16", "3+")] = -1
    """The producer's current epoch. This will be checked against the producer epoch on the
    broker, and the request will return an error if they do not match."""
    enable2_pc: Annotated[bool, Field("bool", "6+")] = False
    """True if the client wants to enable two-phase commit (2PC) protocol for transactions."""
    keep_prepared_txn: Annotated[bool, Field("bool", "6+")] = False
    """True if the client wants to keep the currently ongoing transaction instead of aborting it."""


class InitProducerIdResponse(KafkaMessage):
    """Response in versions 0-6, flexible in 2+.

    Starting in version 1, on quota violation, brokers send out responses before throttling.

    Version 2 is the first flexible version.

    Version 3 is the same as version 2.

    Version 4 adds the support for new error code PRODUCER_FENCED.

    Version 5 adds support for new error code TRANSACTION_ABORTABLE (KIP-890).

    Version 6 adds support for 2PC (KIP-939).
    """

    VERSIONS = Versions("InitProducerIdResponse", "0-6", flexible="2+", api_key=22)

    throttle_time_ms: Annotated[int, Field("int32", "0+", ignorable=True)] = 0
    """The duration in milliseconds for which the request was throttled due to a quota violation,
    or zero if the request did not violate any quota."""
    error_code: Annotated[int, Field("int16", "0+")] = 0
    """The error code, or 0 if there was no error."""
    producer_id: Annotated[int, Field("int64", "0+")] = -1
    """The current producer id."""
    producer_epoch: Annotated[int, Field("int16", "0+")] = 0
    """The current epoch associated with the producer id."""
    ongoing_txn_producer_id: Annotated[int, Field("int64", "6+")] = -1
    """The producer id for ongoing transaction when KeepPreparedTxn is used, -1 if there is no
    transaction ongoing."""
    ongoing_txn_producer_epoch: Annotated[int, Field("int16", "6+")] = -1
    """The epoch associated with the producer id for ongoing transaction when KeepPreparedTxn is
    used, -1 if there is no transaction ongoing."""
