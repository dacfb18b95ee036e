"""Quotas: bytes per second that clients may produce and consume.

A quota is for a user, a client id, both, or the default of either. The first of these that exists
counts, as with Kafka:

    user and client id
    user and the default client id
    user
    the default user and a client id
    the default user and the default client id
    the default user
    client id
    the default client id

Clients that share the named part of it share the bytes: a quota for a user is for all its
connections together, and a default gives as much to each.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import NamedTuple

import msgspec

from frazil.disk import Disk
from frazil.errors import TooLarge
from frazil.httpd import WorkerThreads
from frazil.kafka.access.files import AccessFile
from frazil.kafka.access.principals import user_of
from frazil.metrics import Counter
from frazil.model import Clock

NAME = "quotas.ckpt"
KIND = b"KQTA"
PRODUCE_RATE, FETCH_RATE = "producer_byte_rate", "consumer_byte_rate"
QUOTAS_MAX = 10_000
BUCKETS_MAX = 10_000
"""Clients whose bytes are counted. Of more, those that were idle longest start anew."""
BURST_S = 1.0
"""A client that was idle may send as much at once as its quota is for this long."""
THROTTLE_MS_MAX = 10_000
"""Longest pause after one request. What a client owes beyond it adds to the next."""
NS_PER_S = 1_000_000_000
MS_PER_S = 1000

THROTTLED = Counter("frazil.kafka.throttled.requests", "Requests followed by a pause, by quota.")


class QuotaEntity(NamedTuple):
    """For whom a quota is: None is for any, empty for the default."""

    user: str | None
    client_id: str | None


Quotas = Mapping[QuotaEntity, Mapping[str, float]]
"""Values by entity and name."""


class QuotaTable(msgspec.Struct, frozen=True):
    """What the file holds."""

    quotas: list[tuple[QuotaEntity, dict[str, float]]] = []


class TokenBucket:
    """Bytes that a client may send. They grow with time, up to a burst; a request may take more
    than there are, and the client waits until they have grown back."""

    __slots__ = ("_begin_ns", "_tokens", "rate")

    def __init__(self, rate: float, now_ns: int) -> None:
        self.rate = rate
        self._tokens = rate * BURST_S
        self._begin_ns = now_ns

    def take(self, count: int, now_ns: int) -> int:
        """Take bytes. Returns how many milliseconds to wait."""
        grown = self._tokens + (now_ns - self._begin_ns) * self.rate / NS_PER_S
        self._tokens = min(grown, self.rate * BURST_S) - count
        self._begin_ns = now_ns
        if self._tokens >= 0:
            return 0
        return min(THROTTLE_MS_MAX, 1 + int(-self._tokens * MS_PER_S / self.rate))


class ClientQuotas:
    """Owned by the event loop."""

    def __init__(self, disk: Disk, threads: WorkerThreads, clock: Clock) -> None:
        """Read the quotas. Raises `Corrupt` if the file is damaged."""
        self._file = AccessFile(disk, NAME, KIND, QuotaTable)
        self._threads = threads
        self._clock = clock
        self._turn = asyncio.Lock()
        self._buckets: OrderedDict[tuple[str, QuotaEntity], TokenBucket] = OrderedDict()
        self._set(dict((self._file.read() or QuotaTable()).quotas))

    def _set(self, quotas: Quotas) -> None:
        self.quotas = quotas
        self.is_on = bool(quotas)
        """Whether there is any quota."""
        self._buckets.clear()

    async def change(self, change: Callable[[Quotas], Quotas]) -> None:
        """Change quotas. Returns once that is durable; raises what `change` raises."""
        async with self._turn:
            after = change(self.quotas)
            if after == self.quotas:
                return
            if len(after) > QUOTAS_MAX:
                raise TooLarge(f"{len(after)} quotas; a node can have {QUOTAS_MAX}")
            ordered = sorted(after.items(), key=lambda item: repr(item[0]))
            table = QuotaTable([(entity, dict(values)) for entity, values in ordered])
            await self._threads.run(self._file.write, table)
            self._set(after)

    def throttle_ms(self, name: str, principal: str, client_id: str, count: int) -> int:
        """Count bytes of a client. Returns how long it must wait before it goes on."""
        found = quota_of(self.quotas, name, user_of(principal), client_id)
        if found is None:
            return 0
        entity, rate = found
        key, now_ns = (name, entity), self._clock.monotonic_ns()
        bucket = self._buckets.get(key)
        if bucket is None:
            bucket = self._buckets[key] = TokenBucket(rate, now_ns)
            if len(self._buckets) > BUCKETS_MAX:
                self._buckets.popitem(last=False)
        else:
            self._buckets.move_to_end(key)
        wait_ms = bucket.take(count, now_ns)
        if wait_ms:
            THROTTLED.add(quota=name)
        return wait_ms


def quota_of(
    quotas: Quotas, name: str, user: str, client_id: str
) -> tuple[QuotaEntity, float] | None:
    """Return the quota that counts for a client, and whose bytes it counts; None without one."""
    both, of_user, of_client = (user, client_id), (user, None), (None, client_id)
    for entity, counted in (
        ((user, client_id), both),
        ((user, ""), both),
        ((user, None), of_user),
        (("", client_id), both),
        (("", ""), both),
        (("", None), of_user),
        ((None, client_id), of_client),
        ((None, ""), of_client),
    ):
        rate = quotas.get(QuotaEntity(*entity), {}).get(name)
        if rate is not None:
            return QuotaEntity(*counted), rate
    return None
