"""AclAdministration: DescribeAcls, CreateAcls and DeleteAcls."""

from __future__ import annotations

import enum
import logging
from dataclasses import dataclass
from itertools import groupby
from typing import TypeVar

from frazil.errors import FrazilError, Malformed
from frazil.kafka.access.acls import (
    CLUSTER,
    OPERATIONS,
    AclBinding,
    AclOperation,
    AclPermission,
    PatternType,
    ResourceType,
)
from frazil.kafka.access.authorizer import Authorizer
from frazil.kafka.access.principals import USER
from frazil.kafka.context import RequestContext
from frazil.kafka.error_codes import ErrorCode, error_code
from frazil.kafka.router import ApiRouter
from frazil.kafka.wire.messages.create_acls import CreateAclsRequest, CreateAclsResponse
from frazil.kafka.wire.messages.delete_acls import DeleteAclsRequest, DeleteAclsResponse
from frazil.kafka.wire.messages.describe_acls import DescribeAclsRequest, DescribeAclsResponse

logger = logging.getLogger(__name__)

DESCRIBE, CREATE, DELETE = 29, 30, 31
OFF = "ACLs are off on this node: set kafka.acls = true and kafka.super_users"
NAME_CHARACTERS_MAX = 1024
"""Of the names, principals and hosts of an ACL."""

E = TypeVar("E", bound=enum.IntEnum)
Outcome = tuple[ErrorCode, str | None]
DONE: Outcome = (ErrorCode.NONE, None)


@dataclass(frozen=True, slots=True)
class AclFilter:
    """Which ACLs are meant. None and ANY mean all."""

    resource_type: ResourceType
    name: str | None
    pattern: PatternType
    principal: str | None
    host: str | None
    operation: AclOperation
    permission: AclPermission

    def matches(self, binding: AclBinding) -> bool:
        """Return whether an ACL is meant."""
        return (
            self.resource_type in (ResourceType.ANY, binding.resource_type)
            and self._matches_name(binding)
            and self.principal in (None, binding.principal)
            and self.host in (None, binding.host)
            and self.operation in (AclOperation.ANY, binding.operation)
            and self.permission in (AclPermission.ANY, binding.permission)
        )

    def _matches_name(self, binding: AclBinding) -> bool:
        if self.pattern is PatternType.MATCH:
            return self.name is None or binding.covers(self.name)
        is_pattern = self.pattern in (PatternType.ANY, binding.pattern)
        return is_pattern and self.name in (None, binding.name)


class AclAdministration:
    """Owned by the event loop."""

    def __init__(self, authorizer: Authorizer | None) -> None:
        self._authorizer = authorizer

    def register(self, router: ApiRouter) -> None:
        router.add(DESCRIBE, "1-3", self.describe)
        router.add(CREATE, "1-3", self.create)
        router.add(DELETE, "1-3", self.delete)

    async def describe(
        self, request: DescribeAclsRequest, context: RequestContext
    ) -> DescribeAclsResponse:
        """List ACLs, by resource."""
        if self._authorizer is None:
            return DescribeAclsResponse(error_code=ErrorCode.SECURITY_DISABLED, error_message=OFF)
        try:
            wanted = _filter_of(request)
        except Malformed as error:
            return DescribeAclsResponse(
                error_code=ErrorCode.INVALID_REQUEST, error_message=str(error)
            )
        found = sorted(each for each in self._authorizer.bindings if wanted.matches(each))
        return DescribeAclsResponse(
            error_message=None,
            resources=[
                DescribeAclsResponse.DescribeAclsResource(
                    *(kind, name, pattern),
                    [
                        DescribeAclsResponse.AclDescription(
                            each.principal, each.host, each.operation, each.permission
                        )
                        for each in bindings
                    ],
                )
                for (kind, name, pattern), bindings in groupby(
                    found, key=lambda each: (each.resource_type, each.name, each.pattern)
                )
            ],
        )

    async def create(
        self, request: CreateAclsRequest, context: RequestContext
    ) -> CreateAclsResponse:
        """Add ACLs. One that is there already is no error."""
        result = CreateAclsResponse.AclCreationResult
        authorizer = self._authorizer
        if authorizer is None:
            return CreateAclsResponse(
                results=[result(ErrorCode.SECURITY_DISABLED, OFF) for _ in request.creations]
            )
        added: set[AclBinding] = set()
        outcomes: list[Outcome] = []
        for each in request.creations:
            try:
                added.add(_binding_of(each))
                outcomes.append(DONE)
            except Malformed as error:
                outcomes.append((ErrorCode.INVALID_REQUEST, str(error)))
        try:
            await authorizer.change(lambda bindings: bindings | added)
        except FrazilError as error:
            failed = error_code(error), str(error)
            outcomes = [failed if outcome == DONE else outcome for outcome in outcomes]
        _report("added", outcomes.count(DONE), context)
        return CreateAclsResponse(results=[result(*outcome) for outcome in outcomes])

    async def delete(
        self, request: DeleteAclsRequest, context: RequestContext
    ) -> DeleteAclsResponse:
        """Delete the ACLs that are meant."""
        result = DeleteAclsResponse.DeleteAclsFilterResult
        authorizer = self._authorizer
        if authorizer is None:
            return DeleteAclsResponse(
                filter_results=[result(ErrorCode.SECURITY_DISABLED, OFF) for _ in request.filters]
            )
        results: list[DeleteAclsResponse.DeleteAclsFilterResult] = []
        found: list[set[AclBinding]] = []
        for each in request.filters:
            try:
                wanted = _filter_of(each)
            except Malformed as error:
                results.append(result(ErrorCode.INVALID_REQUEST, str(error)))
                continue
            matching = sorted(b for b in authorizer.bindings if wanted.matches(b))
            results.append(result(ErrorCode.NONE, None, [_deleted(b) for b in matching]))
            found.append(set(matching))
        try:
            await authorizer.change(lambda bindings: bindings.difference(*found))
        except FrazilError as error:
            outcome = error_code(error), str(error)
            results = [result(*outcome) if not each.error_code else each for each in results]
        _report("deleted", sum(len(each.matching_acls) for each in results), context)
        return DeleteAclsResponse(filter_results=results)


def _report(what: str, count: int, context: RequestContext) -> None:
    logger.info("ACLs changed", extra={"principal": context.principal, what: count})


def _deleted(binding: AclBinding) -> DeleteAclsResponse.DeleteAclsMatchingAcl:
    return DeleteAclsResponse.DeleteAclsMatchingAcl(
        ErrorCode.NONE,
        None,
        *(binding.resource_type, binding.name, binding.pattern, binding.principal, binding.host),
        *(binding.operation, binding.permission),
    )


def _filter_of(asked: DescribeAclsRequest | DeleteAclsRequest.DeleteAclsFilter) -> AclFilter:
    return AclFilter(
        _number(ResourceType, asked.resource_type_filter, "resource type"),
        asked.resource_name_filter,
        _number(PatternType, asked.pattern_type_filter, "pattern type"),
        asked.principal_filter,
        asked.host_filter,
        _number(AclOperation, asked.operation, "operation"),
        _number(AclPermission, asked.permission_type, "permission"),
    )


def _binding_of(asked: CreateAclsRequest.AclCreation) -> AclBinding:
    """Return the ACL to create. Raises `Malformed` if it says nothing that a node enforces."""
    kind = _number(ResourceType, asked.resource_type, "resource type")
    pattern = _number(PatternType, asked.resource_pattern_type, "pattern type")
    operation = _number(AclOperation, asked.operation, "operation")
    permission = _number(AclPermission, asked.permission_type, "permission")
    texts = (asked.resource_name, asked.principal, asked.host)
    if any(not text or len(text) > NAME_CHARACTERS_MAX for text in texts):
        raise Malformed(f"name, principal and host need 1 to {NAME_CHARACTERS_MAX} characters")
    if kind is ResourceType.ANY or permission is AclPermission.ANY:
        raise Malformed("an ACL is for one type of resource, and allows or denies")
    if pattern not in (PatternType.LITERAL, PatternType.PREFIXED):
        raise Malformed("the name of an ACL is literal or a prefix")
    if kind is ResourceType.CLUSTER and asked.resource_name != CLUSTER:
        raise Malformed(f"the only resource of type cluster is {CLUSTER}")
    if operation is not AclOperation.ALL and operation not in OPERATIONS[kind]:
        raise Malformed(f"there is no operation {operation.name} with a {kind.name}")
    prefix, colon, user = asked.principal.partition(":")
    if prefix != USER or not colon or not user:
        raise Malformed(f"principal {asked.principal} must be as in {USER}:alice")
    return AclBinding(
        kind, asked.resource_name, pattern, asked.principal, asked.host, operation, permission
    )


def _number(kind: type[E], number: int, what: str) -> E:
    try:
        return kind(number)
    except ValueError:
        raise Malformed(f"{what} {number} is not supported") from None
