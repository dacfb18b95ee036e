"""storage_error: the code for records that the log did not take."""

from __future__ import annotations

from frazil.errors import Fenced, TooLarge
from frazil.kafka.error_codes import ErrorCode


def storage_error(error: Exception) -> ErrorCode:
    """Return the code. Clients retry all but the first two."""
    if isinstance(error, Fenced):
        return ErrorCode.INVALID_PRODUCER_EPOCH
    if isinstance(error, TooLarge):
        return ErrorCode.INVALID_COMMIT_OFFSET_SIZE
    return ErrorCode.COORDINATOR_NOT_AVAILABLE
