"""load: reads `__transaction_state` at start."""

from __future__ import annotations

import logging
from contextlib import closing

from frazil.errors import Malformed
from frazil.kafka.transactions.records import read_transaction
from frazil.kafka.transactions.transactional_ids import TransactionalIds
from frazil.log import Partition, Reader
from frazil.metrics import Counter

logger = logging.getLogger(__name__)

SKIPPED = Counter(
    "frazil.kafka.transaction.skipped.records", "Records of `__transaction_state` not understood."
)


def load(partition: Partition, ids: TransactionalIds) -> None:
    """Read the whole topic. The last record of each id counts."""
    latest: dict[bytes, tuple[int, bytes | None]] = {}
    with closing(Reader(partition, partition.view.start_offset)) as reader:
        while batches := reader.read():
            for batch in batches:
                for record in batch.records():
                    if record.key is not None:
                        latest[record.key] = record.offset, record.value
    for key, (offset, value) in latest.items():
        if value is None:
            continue
        try:
            ids.put(read_transaction(key, value))
        except Malformed as error:
            SKIPPED.add()
            logger.warning(
                "a record of __transaction_state was skipped",
                extra={"offset": offset, "reason": str(error)},
            )
