"""QuotaAdministration: DescribeClientQuotas and AlterClientQuotas."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from math import isfinite
from operator import eq

from frazil.errors import FrazilError, Malformed
from frazil.kafka.access.quotas import (
    FETCH_RATE,
    PRODUCE_RATE,
    ClientQuotas,
    QuotaEntity,
    Quotas,
)
from frazil.kafka.context import RequestContext
from frazil.kafka.error_codes import ErrorCode, error_code
from frazil.kafka.router import ApiRouter
from frazil.kafka.wire.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
)
from frazil.kafka.wire.messages.describe_client_quotas import (
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
)

logger = logging.getLogger(__name__)

DESCRIBE, ALTER = 48, 49
USER, CLIENT_ID, IP = "user", "client-id", "ip"
EXACT, DEFAULT, SPECIFIED = 0, 1, 2
"""How a filter matches."""
NAME_CHARACTERS_MAX = 255

Matches = Callable[[str | None], bool]
"""Whether the name of an entity is meant: None if it has none, empty for the default."""


class QuotaAdministration:
    """Owned by the event loop."""

    def __init__(self, quotas: ClientQuotas) -> None:
        self._quotas = quotas

    def register(self, router: ApiRouter) -> None:
        router.add(DESCRIBE, "0-1", self.describe)
        router.add(ALTER, "0-1", self.alter)

    async def describe(
        self, request: DescribeClientQuotasRequest, context: RequestContext
    ) -> DescribeClientQuotasResponse:
        """List quotas."""
        try:
            is_user, is_client = _matchers(request)
        except Malformed as error:
            return DescribeClientQuotasResponse(
                error_code=ErrorCode.INVALID_REQUEST, error_message=str(error), entries=None
            )
        value_class = DescribeClientQuotasResponse.ValueData
        return DescribeClientQuotasResponse(
            error_message=None,
            entries=[
                DescribeClientQuotasResponse.EntryData(
                    entity=[
                        DescribeClientQuotasResponse.EntityData(kind, name or None)
                        for kind, name in ((USER, entity.user), (CLIENT_ID, entity.client_id))
                        if name is not None
                    ],
                    values=[value_class(name, value) for name, value in values.items()],
                )
                for entity, values in self._quotas.quotas.items()
                if is_user(entity.user) and is_client(entity.client_id)
            ],
        )

    async def alter(
        self, request: AlterClientQuotasRequest, context: RequestContext
    ) -> AlterClientQuotasResponse:
        """Set and remove quotas: all of an entity's, or none of them."""
        outcomes: list[tuple[ErrorCode, str | None]] = []

        def change(quotas: Quotas) -> Quotas:
            for entry in request.entries:
                try:
                    quotas = _changed(quotas, entry)
                    outcomes.append((ErrorCode.NONE, None))
                except Malformed as error:
                    outcomes.append((ErrorCode.INVALID_REQUEST, str(error)))
            return quotas

        try:
            if request.validate_only:
                change(self._quotas.quotas)
            else:
                await self._quotas.change(change)
                done = outcomes.count((ErrorCode.NONE, None))
                extra = {"principal": context.principal, "changed": done}
                logger.info("quotas changed", extra=extra)
        except FrazilError as error:
            outcomes = [(error_code(error), str(error))] * len(request.entries)
        return AlterClientQuotasResponse(
            entries=[
                AlterClientQuotasResponse.EntryData(
                    *outcome,
                    [
                        AlterClientQuotasResponse.EntityData(each.entity_type, each.entity_name)
                        for each in entry.entity
                    ],
                )
                for entry, outcome in zip(request.entries, outcomes, strict=True)
            ]
        )


def _matchers(request: DescribeClientQuotasRequest) -> tuple[Matches, Matches]:
    """Return which users and which client ids are meant."""
    found: dict[str, Matches] = {}
    for each in request.components:
        _check_type(each.entity_type)
        if each.entity_type in found:
            raise Malformed(f"{each.entity_type} is named twice")
        if each.match_type == EXACT and each.match:
            found[each.entity_type] = partial(eq, each.match)
        elif each.match_type == DEFAULT:
            found[each.entity_type] = partial(eq, "")
        elif each.match_type == SPECIFIED:
            found[each.entity_type] = lambda name: name is not None
        else:
            raise Malformed(f"match type {each.match_type} is not supported")

    def unnamed(name: str | None) -> bool:
        return name is None or not request.strict

    return found.get(USER, unnamed), found.get(CLIENT_ID, unnamed)


def _check_type(entity_type: str) -> None:
    if entity_type == IP:
        raise Malformed("quotas by IP address are not supported; set kafka.connections_max")
    if entity_type not in (USER, CLIENT_ID):
        raise Malformed(f"there are no quotas by {entity_type}; use {USER} or {CLIENT_ID}")


def _changed(quotas: Quotas, entry: AlterClientQuotasRequest.EntryData) -> Quotas:
    """Return quotas with those of an entity changed. Raises `Malformed`."""
    names: dict[str, str] = {}
    for each in entry.entity:
        _check_type(each.entity_type)
        if each.entity_type in names or each.entity_name == "":
            raise Malformed(f"{each.entity_type} is named twice, or is empty")
        if len(each.entity_name or "") > NAME_CHARACTERS_MAX:
            raise Malformed(f"a {each.entity_type} has up to {NAME_CHARACTERS_MAX} characters")
        names[each.entity_type] = each.entity_name or ""
    if not names:
        raise Malformed(f"a quota is for a {USER} or a {CLIENT_ID}")
    entity = QuotaEntity(names.get(USER), names.get(CLIENT_ID))
    values = dict(quotas.get(entity, {}))
    for change in entry.ops:
        if change.key not in (PRODUCE_RATE, FETCH_RATE):
            raise Malformed(f"there is no quota {change.key}; use {PRODUCE_RATE} or {FETCH_RATE}")
        if change.remove:
            values.pop(change.key, None)
        elif not isfinite(change.value) or change.value < 1:
            raise Malformed(f"{change.key} is {change.value}; it must be at least 1")
        else:
            values[change.key] = change.value
    others = {key: each for key, each in quotas.items() if key != entity}
    return {**others, entity: values} if values else others
