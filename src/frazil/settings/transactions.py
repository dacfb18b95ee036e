"""TransactionsConfig: settings of transactions."""

from __future__ import annotations

from typing import Annotated

import msgspec

from frazil.model import doc, require_at_least


class TransactionsConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Transactions: limits and times."""

    ids_max: Annotated[int, doc("Transactional ids.")] = 10_000
    timeout_ms_max: Annotated[
        int, doc("Longest transaction timeout that a producer may ask for.")
    ] = 900_000
    id_retention_ms: Annotated[
        int, doc("Forget a transactional id that was not used for this long.")
    ] = 7 * 86_400_000
    expiry_interval_ms: Annotated[int, doc("Look for unused transactional ids this often.")] = (
        3_600_000
    )

    def __post_init__(self) -> None:
        require_at_least(1, "kafka.transactions", self, self.__struct_fields__)
