"""Guards of the APIs of settings, and of those for the whole cluster."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from frazil.kafka.access.acls import AclOperation
from frazil.kafka.access.guards.checks import (
    CLUSTER_REFUSED,
    GROUP_REFUSED,
    NOT_ALLOWED,
    TOPIC_REFUSED,
    Guard,
    Guarded,
)
from frazil.kafka.access.guards.topics import cluster_operations
from frazil.kafka.error_codes import ErrorCode
from frazil.kafka.router import Reply
from frazil.kafka.wire.messages.alter_client_quotas import AlterClientQuotasResponse
from frazil.kafka.wire.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsResponse,
)
from frazil.kafka.wire.messages.create_acls import CreateAclsResponse
from frazil.kafka.wire.messages.delete_acls import DeleteAclsResponse
from frazil.kafka.wire.messages.describe_acls import DescribeAclsResponse
from frazil.kafka.wire.messages.describe_client_quotas import DescribeClientQuotasResponse
from frazil.kafka.wire.messages.describe_cluster import DescribeClusterResponse
from frazil.kafka.wire.messages.describe_configs import DescribeConfigsResponse
from frazil.kafka.wire.messages.describe_log_dirs import DescribeLogDirsResponse
from frazil.kafka.wire.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsResponse,
)
from frazil.kafka.wire.schema import KafkaMessage

TOPIC_CONFIG, GROUP_CONFIG = 2, 32
"""Kafka's numbers for resources that have settings. All others belong to the cluster."""


def cluster(operation: AclOperation, refusal: Callable[[Any], KafkaMessage]) -> Guard:
    """Return the guard of an API that does something with the cluster."""

    async def guard(guarded: Guarded) -> Reply:
        if guarded.caller.may_cluster(operation):
            return await guarded.go_on()
        return refusal(guarded.request)

    return guard


def acls_unseen(_: object) -> DescribeAclsResponse:
    return DescribeAclsResponse(error_code=CLUSTER_REFUSED, error_message=NOT_ALLOWED)


def acls_uncreated(request: Any) -> CreateAclsResponse:
    result = CreateAclsResponse.AclCreationResult
    return CreateAclsResponse(
        results=[result(CLUSTER_REFUSED, NOT_ALLOWED) for _ in request.creations]
    )


def acls_undeleted(request: Any) -> DeleteAclsResponse:
    result = DeleteAclsResponse.DeleteAclsFilterResult
    return DeleteAclsResponse(
        filter_results=[result(CLUSTER_REFUSED, NOT_ALLOWED) for _ in request.filters]
    )


def quotas_unseen(_: object) -> DescribeClientQuotasResponse:
    return DescribeClientQuotasResponse(
        error_code=CLUSTER_REFUSED, error_message=NOT_ALLOWED, entries=None
    )


def quotas_unchanged(request: Any) -> AlterClientQuotasResponse:
    response = AlterClientQuotasResponse
    return response(
        entries=[
            response.EntryData(
                error_code=CLUSTER_REFUSED,
                error_message=NOT_ALLOWED,
                entity=[
                    response.EntityData(each.entity_type, each.entity_name) for each in entry.entity
                ],
            )
            for entry in request.entries
        ]
    )


def users_unseen(_: object) -> DescribeUserScramCredentialsResponse:
    return DescribeUserScramCredentialsResponse(
        error_code=CLUSTER_REFUSED, error_message=NOT_ALLOWED
    )


def users_unchanged(request: Any) -> AlterUserScramCredentialsResponse:
    result = AlterUserScramCredentialsResponse.AlterUserScramCredentialsResult
    names = dict.fromkeys(each.name for each in (*request.deletions, *request.upsertions))
    return AlterUserScramCredentialsResponse(
        results=[result(name, CLUSTER_REFUSED, NOT_ALLOWED) for name in names]
    )


def log_dirs_unseen(_: object) -> DescribeLogDirsResponse:
    return DescribeLogDirsResponse(error_code=CLUSTER_REFUSED)


async def describe_cluster(guarded: Guarded) -> Reply:
    """Everybody may know where the broker is."""

    def add(response: DescribeClusterResponse) -> None:
        if guarded.request.include_cluster_authorized_operations and not response.error_code:
            response.cluster_authorized_operations = cluster_operations(guarded)

    return await guarded.answer_with(add)


async def describe_configs(guarded: Guarded) -> Reply:
    """See the settings of topics, of groups, of the cluster."""
    refused = _take_refused(guarded, AclOperation.DESCRIBE_CONFIGS)

    def add(response: DescribeConfigsResponse) -> None:
        response.results += [
            DescribeConfigsResponse.DescribeConfigsResult(
                code, NOT_ALLOWED, asked.resource_type, asked.resource_name
            )
            for asked, code in refused
        ]

    return await guarded.answer_with(add)


async def alter_configs(guarded: Guarded) -> Reply:
    """Change the settings of topics, of groups, of the cluster. The same for both APIs."""
    refused = _take_refused(guarded, AclOperation.ALTER_CONFIGS)

    def add(response: Any) -> None:
        response.responses += [
            response.AlterConfigsResourceResponse(
                code, NOT_ALLOWED, asked.resource_type, asked.resource_name
            )
            for asked, code in refused
        ]

    return await guarded.answer_with(add)


def _take_refused(guarded: Guarded, operation: AclOperation) -> list[tuple[Any, ErrorCode]]:
    """Take out of a request what a client may not do. Returns it, with the codes."""
    allowed: list[Any] = []
    refused: list[tuple[Any, ErrorCode]] = []
    for asked in guarded.request.resources:
        code = _config_code(guarded, operation, asked)
        if code is ErrorCode.NONE:
            allowed.append(asked)
        else:
            refused.append((asked, code))
    guarded.request.resources = allowed
    return refused


def _config_code(guarded: Guarded, operation: AclOperation, asked: Any) -> ErrorCode:
    caller, name = guarded.caller, asked.resource_name
    if asked.resource_type == TOPIC_CONFIG:
        return ErrorCode.NONE if caller.may_topic(operation, name) else TOPIC_REFUSED
    if asked.resource_type == GROUP_CONFIG:
        return ErrorCode.NONE if caller.may_group(operation, name) else GROUP_REFUSED
    return ErrorCode.NONE if caller.may_cluster(operation) else CLUSTER_REFUSED
