"""GroupError: the protocol's error codes that groups answer with."""

from __future__ import annotations

import enum

from frazil.errors import Fenced, TooLarge


class GroupError(enum.IntEnum):
    """Names and numbers are Kafka's."""

    NONE = 0
    UNKNOWN_TOPIC_OR_PARTITION = 3
    OFFSET_METADATA_TOO_LARGE = 12
    COORDINATOR_NOT_AVAILABLE = 15
    ILLEGAL_GENERATION = 22
    INCONSISTENT_GROUP_PROTOCOL = 23
    INVALID_GROUP_ID = 24
    UNKNOWN_MEMBER_ID = 25
    INVALID_SESSION_TIMEOUT = 26
    REBALANCE_IN_PROGRESS = 27
    INVALID_COMMIT_OFFSET_SIZE = 28
    INVALID_REQUEST = 42
    INVALID_PRODUCER_EPOCH = 47
    NON_EMPTY_GROUP = 68
    GROUP_ID_NOT_FOUND = 69
    MEMBER_ID_REQUIRED = 79
    GROUP_MAX_SIZE_REACHED = 81
    FENCED_INSTANCE_ID = 82
    GROUP_SUBSCRIBED_TO_TOPIC = 86
    UNSTABLE_OFFSET_COMMIT = 88


def error_of(error: Exception) -> GroupError:
    """Return the code for records that the log did not take."""
    if isinstance(error, Fenced):
        return GroupError.INVALID_PRODUCER_EPOCH
    if isinstance(error, TooLarge):
        return GroupError.INVALID_COMMIT_OFFSET_SIZE
    return GroupError.COORDINATOR_NOT_AVAILABLE
