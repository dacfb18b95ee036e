"""ErrorCode: Kafka's error codes, and the one that each of our errors gets."""

from __future__ import annotations

import enum

from frazil.errors import (
    Conflict,
    Corrupt,
    Fenced,
    FrazilError,
    Malformed,
    OutOfRange,
    Overloaded,
    SequenceGap,
    SequenceOld,
    TooLarge,
    Unauthenticated,
    Unavailable,
    Unknown,
    Unresolved,
)


class ErrorCode(enum.IntEnum):
    """The codes that the port answers with. Names and numbers are Kafka's."""

    UNKNOWN_SERVER_ERROR = -1
    NONE = 0
    OFFSET_OUT_OF_RANGE = 1
    CORRUPT_MESSAGE = 2
    UNKNOWN_TOPIC_OR_PARTITION = 3
    LEADER_NOT_AVAILABLE = 5
    NOT_LEADER_OR_FOLLOWER = 6
    REQUEST_TIMED_OUT = 7
    MESSAGE_TOO_LARGE = 10
    OFFSET_METADATA_TOO_LARGE = 12
    COORDINATOR_LOAD_IN_PROGRESS = 14
    COORDINATOR_NOT_AVAILABLE = 15
    NOT_COORDINATOR = 16
    INVALID_TOPIC_EXCEPTION = 17
    NOT_ENOUGH_REPLICAS = 19
    INVALID_REQUIRED_ACKS = 21
    ILLEGAL_GENERATION = 22
    INCONSISTENT_GROUP_PROTOCOL = 23
    INVALID_GROUP_ID = 24
    UNKNOWN_MEMBER_ID = 25
    INVALID_SESSION_TIMEOUT = 26
    REBALANCE_IN_PROGRESS = 27
    INVALID_COMMIT_OFFSET_SIZE = 28
    TOPIC_AUTHORIZATION_FAILED = 29
    GROUP_AUTHORIZATION_FAILED = 30
    CLUSTER_AUTHORIZATION_FAILED = 31
    UNSUPPORTED_SASL_MECHANISM = 33
    ILLEGAL_SASL_STATE = 34
    UNSUPPORTED_VERSION = 35
    TOPIC_ALREADY_EXISTS = 36
    INVALID_PARTITIONS = 37
    INVALID_REPLICATION_FACTOR = 38
    INVALID_REPLICA_ASSIGNMENT = 39
    INVALID_CONFIG = 40
    INVALID_REQUEST = 42
    POLICY_VIOLATION = 44
    OUT_OF_ORDER_SEQUENCE_NUMBER = 45
    DUPLICATE_SEQUENCE_NUMBER = 46
    INVALID_PRODUCER_EPOCH = 47
    INVALID_TXN_STATE = 48
    INVALID_PRODUCER_ID_MAPPING = 49
    INVALID_TRANSACTION_TIMEOUT = 50
    CONCURRENT_TRANSACTIONS = 51
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED = 53
    SECURITY_DISABLED = 54
    OPERATION_NOT_ATTEMPTED = 55
    KAFKA_STORAGE_ERROR = 56
    SASL_AUTHENTICATION_FAILED = 58
    UNKNOWN_PRODUCER_ID = 59
    NON_EMPTY_GROUP = 68
    GROUP_ID_NOT_FOUND = 69
    INVALID_FETCH_SESSION_EPOCH = 71
    FENCED_LEADER_EPOCH = 74
    UNKNOWN_LEADER_EPOCH = 75
    UNSUPPORTED_COMPRESSION_TYPE = 76
    MEMBER_ID_REQUIRED = 79
    GROUP_MAX_SIZE_REACHED = 81
    FENCED_INSTANCE_ID = 82
    GROUP_SUBSCRIBED_TO_TOPIC = 86
    INVALID_RECORD = 87
    UNSTABLE_OFFSET_COMMIT = 88
    THROTTLING_QUOTA_EXCEEDED = 89
    PRODUCER_FENCED = 90
    RESOURCE_NOT_FOUND = 91
    DUPLICATE_RESOURCE = 92
    UNACCEPTABLE_CREDENTIAL = 93
    UNKNOWN_TOPIC_ID = 100
    INCONSISTENT_TOPIC_ID = 103
    TRANSACTIONAL_ID_NOT_FOUND = 105
    FENCED_MEMBER_EPOCH = 110
    UNRELEASED_INSTANCE_ID = 111
    UNSUPPORTED_ASSIGNOR = 112
    STALE_MEMBER_EPOCH = 113
    UNKNOWN_SUBSCRIPTION_ID = 117
    TELEMETRY_TOO_LARGE = 118
    TRANSACTION_ABORTABLE = 120
    INVALID_REGULAR_EXPRESSION = 128


_CODES: tuple[tuple[type[FrazilError], ErrorCode], ...] = (
    (Fenced, ErrorCode.INVALID_PRODUCER_EPOCH),
    (SequenceGap, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER),
    # Not DUPLICATE_SEQUENCE_NUMBER: clients take that one for success.
    (SequenceOld, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER),
    (TooLarge, ErrorCode.MESSAGE_TOO_LARGE),
    (Unknown, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    (OutOfRange, ErrorCode.OFFSET_OUT_OF_RANGE),
    (Unauthenticated, ErrorCode.SASL_AUTHENTICATION_FAILED),
    (Malformed, ErrorCode.INVALID_RECORD),
    (Overloaded, ErrorCode.KAFKA_STORAGE_ERROR),
    # Clients ask for the leader again, and retry.
    (Unavailable, ErrorCode.NOT_LEADER_OR_FOLLOWER),
    (Conflict, ErrorCode.NOT_LEADER_OR_FOLLOWER),
    # Stored or not: an idempotent client repeats the batch and gets its offset.
    (Unresolved, ErrorCode.REQUEST_TIMED_OUT),
    (Corrupt, ErrorCode.KAFKA_STORAGE_ERROR),
)


def error_code(error: FrazilError) -> ErrorCode:
    """Return the code for an error of a batch, or of a partition."""
    for kind, code in _CODES:
        if isinstance(error, kind):
            return code
    return ErrorCode.UNKNOWN_SERVER_ERROR
