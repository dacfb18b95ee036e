"""Authorizer: decides what clients may do, by ACLs and super users; remembers its decisions."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import msgspec

from frazil.disk import Disk
from frazil.errors import TooLarge
from frazil.httpd import WorkerThreads
from frazil.kafka.access.acls import (
    CLUSTER,
    OPERATIONS,
    AclBinding,
    AclIndex,
    AclOperation,
    ResourceType,
)
from frazil.kafka.access.files import AccessFile
from frazil.metrics import Counter

NAME = "acls.ckpt"
KIND = b"KACL"
ACLS_MAX = 10_000
DECISIONS_MAX = 100_000
"""Decisions that are remembered. They are forgotten together, and when an ACL changes."""

DENIED = Counter(
    "frazil.kafka.access.denials", "Operations that no ACL allows, by resource and operation."
)


class AclTable(msgspec.Struct, frozen=True):
    """What the file holds."""

    bindings: list[AclBinding] = []


Decision = tuple[str, str, AclOperation, ResourceType, str]


class Authorizer:
    """Owned by the event loop."""

    def __init__(self, disk: Disk, threads: WorkerThreads, super_users: Iterable[str]) -> None:
        """Read the ACLs. Raises `Corrupt` if the file is damaged."""
        self._file = AccessFile(disk, NAME, KIND, AclTable)
        self._threads = threads
        self._super_users = frozenset(super_users)
        self._turn = asyncio.Lock()
        self._decisions: dict[Decision, bool] = {}
        self.version = 0
        """Changes with the ACLs."""
        self._index = AclIndex((self._file.read() or AclTable()).bindings)

    @property
    def bindings(self) -> frozenset[AclBinding]:
        return self._index.bindings

    async def change(
        self, change: Callable[[frozenset[AclBinding]], frozenset[AclBinding]]
    ) -> None:
        """Change ACLs. Returns once that is durable; from then on it counts."""
        async with self._turn:
            after = change(self.bindings)
            if after == self.bindings:
                return
            if len(after) > ACLS_MAX:
                raise TooLarge(f"{len(after)} ACLs; a node can have {ACLS_MAX}")
            await self._threads.run(self._file.write, AclTable(sorted(after)))
            self._index = AclIndex(after)
            self._decisions.clear()
            self.version += 1

    def may(
        self, principal: str, host: str, operation: AclOperation, kind: ResourceType, name: str
    ) -> bool:
        """Return whether a client may do this."""
        key = principal, host, operation, kind, name
        known = self._decisions.get(key)
        if known is None:
            known = principal in self._super_users or self._index.allows(*key)
            if len(self._decisions) >= DECISIONS_MAX:
                self._decisions.clear()
            self._decisions[key] = known
        return known

    def may_with_any(
        self, principal: str, host: str, operation: AclOperation, kind: ResourceType
    ) -> bool:
        """Return whether there may be a resource with which a client may do this."""
        if principal in self._super_users:
            return True
        return self._index.allows_any(principal, host, operation, kind)


@dataclass(frozen=True, slots=True)
class Caller:
    """Who sends a request."""

    authorizer: Authorizer
    principal: str
    host: str

    def sees(self, operation: AclOperation, kind: ResourceType, name: str) -> bool:
        """Return whether this is allowed, for lists that leave out what is not."""
        return self.authorizer.may(self.principal, self.host, operation, kind, name)

    def may(self, operation: AclOperation, kind: ResourceType, name: str) -> bool:
        """Return whether this is allowed. Counts what is not."""
        is_allowed = self.sees(operation, kind, name)
        if not is_allowed:
            DENIED.add(resource=kind.name.lower(), operation=operation.name.lower())
        return is_allowed

    def sees_topic(self, name: str) -> bool:
        return self.sees(AclOperation.DESCRIBE, ResourceType.TOPIC, name)

    def may_cluster(self, operation: AclOperation) -> bool:
        return self.may(operation, ResourceType.CLUSTER, CLUSTER)

    def may_topic(self, operation: AclOperation, name: str) -> bool:
        return self.may(operation, ResourceType.TOPIC, name)

    def may_create(self, topic: str) -> bool:
        """Return whether the client may create topics, or this one."""
        create = AclOperation.CREATE
        return self.sees(create, ResourceType.CLUSTER, CLUSTER) or self.may_topic(create, topic)

    def may_group(self, operation: AclOperation, name: str) -> bool:
        return self.may(operation, ResourceType.GROUP, name)

    def may_transaction(self, operation: AclOperation, name: str) -> bool:
        return self.may(operation, ResourceType.TRANSACTIONAL_ID, name)

    def may_write_something(self) -> bool:
        return self.authorizer.may_with_any(
            self.principal, self.host, AclOperation.WRITE, ResourceType.TOPIC
        )

    def operations(self, kind: ResourceType, name: str) -> int:
        """Return what the client may do with a resource: a bit for each operation."""
        return sum(1 << each for each in OPERATIONS[kind] if self.sees(each, kind, name))
