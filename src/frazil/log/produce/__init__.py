"""log/produce: batches from Kafka clients, checked before they are appended. Needs numba.

validate.py  validate_produced, append_of_batch: every rule for a client's batch; stored_as; warm
walk.py      the compiled loop over the records of a batch
"""

from frazil.log.produce.validate import (
    CrcMismatch,
    append_of_batch,
    stored_as,
    validate_produced,
    warm,
)

__all__ = ["CrcMismatch", "append_of_batch", "stored_as", "validate_produced", "warm"]
