"""log/produce: batches from Kafka clients, checked before they are appended. Needs numba.

validate.py  validate_produced, append_of_batch: every rule for a client's batch; warm
walk.py      the compiled loop over the records of a batch
rewrite.py   with_values, stored_as: a batch with other values, times or compression
"""

from frazil.log.format.compression import decompress
from frazil.log.produce.rewrite import stored_as, with_values
from frazil.log.produce.validate import CrcMismatch, append_of_batch, validate_produced, warm

__all__ = [
    "CrcMismatch",
    "append_of_batch",
    "decompress",
    "stored_as",
    "validate_produced",
    "warm",
    "with_values",
]
