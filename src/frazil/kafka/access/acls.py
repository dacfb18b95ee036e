"""ACLs: which principal may do what with which resource. The numbers and rules are Kafka's.

What no ACL allows is refused. A denying ACL counts more than any that allows. Whoever may read,
write, delete or alter something may also see that it is there.
"""

from __future__ import annotations

import enum
from collections import defaultdict
from collections.abc import Iterable, Iterator

import msgspec

ANY_NAME = "*"
"""Every resource of a type, or every host."""
ANY_PRINCIPAL = "User:*"
CLUSTER = "kafka-cluster"
"""The name of the only resource of type cluster."""


class ResourceType(enum.IntEnum):
    """What an ACL is about."""

    ANY = 1
    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5


class PatternType(enum.IntEnum):
    """How the name of an ACL is to be read. The first two are for filters."""

    ANY = 1
    MATCH = 2
    LITERAL = 3
    PREFIXED = 4


class AclOperation(enum.IntEnum):
    """What is done with a resource."""

    ANY = 1
    ALL = 2
    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12
    TWO_PHASE_COMMIT = 15


class AclPermission(enum.IntEnum):
    """Whether it is allowed."""

    ANY = 1
    DENY = 2
    ALLOW = 3


_CONFIGS = (AclOperation.DESCRIBE_CONFIGS, AclOperation.ALTER_CONFIGS)
OPERATIONS: dict[ResourceType, tuple[AclOperation, ...]] = {
    ResourceType.TOPIC: (
        *(AclOperation.READ, AclOperation.WRITE, AclOperation.CREATE, AclOperation.DELETE),
        *(AclOperation.ALTER, AclOperation.DESCRIBE, *_CONFIGS),
    ),
    ResourceType.GROUP: (
        *(AclOperation.READ, AclOperation.DELETE, AclOperation.DESCRIBE, *_CONFIGS),
    ),
    ResourceType.CLUSTER: (
        *(AclOperation.CREATE, AclOperation.ALTER, AclOperation.DESCRIBE),
        *(AclOperation.CLUSTER_ACTION, *_CONFIGS, AclOperation.IDEMPOTENT_WRITE),
    ),
    ResourceType.TRANSACTIONAL_ID: (
        *(AclOperation.WRITE, AclOperation.DESCRIBE, AclOperation.TWO_PHASE_COMMIT),
    ),
}
"""Operations that there are for each type."""

IMPLIED_BY: dict[AclOperation, frozenset[AclOperation]] = {
    AclOperation.DESCRIBE: frozenset(
        {AclOperation.READ, AclOperation.WRITE, AclOperation.DELETE, AclOperation.ALTER}
    ),
    AclOperation.DESCRIBE_CONFIGS: frozenset({AclOperation.ALTER_CONFIGS}),
}
"""Operations that allow another one as well."""


class AclBinding(msgspec.Struct, frozen=True, array_like=True, order=True):
    """One ACL."""

    resource_type: ResourceType
    name: str
    pattern: PatternType
    principal: str
    host: str
    operation: AclOperation
    permission: AclPermission

    def is_for(self, principal: str, host: str) -> bool:
        """Return whether this ACL is about a client."""
        return self.principal in (principal, ANY_PRINCIPAL) and self.host in (host, ANY_NAME)

    def covers(self, name: str) -> bool:
        """Return whether this ACL is about a resource of its type."""
        if self.pattern is PatternType.PREFIXED:
            return name.startswith(self.name)
        return self.name in (name, ANY_NAME)

    @property
    def is_denial(self) -> bool:
        return self.permission is AclPermission.DENY

    def decides(self, operation: AclOperation) -> bool:
        """Return whether this ACL is about an operation."""
        if self.operation in (operation, AclOperation.ALL):
            return True
        return not self.is_denial and self.operation in IMPLIED_BY.get(operation, ())


class AclIndex:
    """All ACLs. Never changed."""

    def __init__(self, bindings: Iterable[AclBinding]) -> None:
        self.bindings = frozenset(bindings)
        self._literal: dict[tuple[ResourceType, str], list[AclBinding]] = defaultdict(list)
        self._prefixed: dict[tuple[ResourceType, str], list[AclBinding]] = defaultdict(list)
        for each in self.bindings:
            is_literal = each.pattern is PatternType.LITERAL
            table = self._literal if is_literal else self._prefixed
            table[each.resource_type, each.name].append(each)
        self._lengths = sorted({len(name) for _, name in self._prefixed})

    def _about(self, kind: ResourceType, name: str) -> Iterator[AclBinding]:
        """Yield the ACLs about a resource, however many there are about others."""
        yield from self._literal.get((kind, name), ())
        if name != ANY_NAME:
            yield from self._literal.get((kind, ANY_NAME), ())
        for length in self._lengths:
            if length <= len(name):
                yield from self._prefixed.get((kind, name[:length]), ())

    def allows(
        self, principal: str, host: str, operation: AclOperation, kind: ResourceType, name: str
    ) -> bool:
        """Return whether an ACL allows this, and none denies it."""
        is_allowed = False
        for each in self._about(kind, name):
            if each.is_for(principal, host) and each.decides(operation):
                if each.is_denial:
                    return False
                is_allowed = True
        return is_allowed

    def allows_any(
        self, principal: str, host: str, operation: AclOperation, kind: ResourceType
    ) -> bool:
        """Return whether there may be a resource of a type with which this is allowed."""
        relevant = [
            each
            for each in self.bindings
            if each.resource_type is kind
            and each.is_for(principal, host)
            and each.decides(operation)
        ]
        denials = [each for each in relevant if each.is_denial]
        return any(
            not any(_excludes(denial, each) for denial in denials)
            for each in relevant
            if not each.is_denial
        )


def _excludes(denial: AclBinding, allowing: AclBinding) -> bool:
    """Return whether a denial leaves nothing of what an ACL allows."""
    if denial.pattern is PatternType.PREFIXED:
        return allowing.name != ANY_NAME and allowing.name.startswith(denial.name)
    if denial.name == ANY_NAME:
        return True
    return allowing.pattern is PatternType.LITERAL and allowing.name == denial.name
