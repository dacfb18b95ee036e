"""UserAdministration: DescribeUserScramCredentials and AlterUserScramCredentials."""

from __future__ import annotations

import logging
from collections import Counter

from frazil.errors import FrazilError, Malformed, Rejected
from frazil.kafka.access.scram import Mechanism, credential_of
from frazil.kafka.access.users import SALT_BYTES_MAX, Users, UserTable, check_user_name
from frazil.kafka.context import RequestContext
from frazil.kafka.error_codes import ErrorCode, error_code
from frazil.kafka.router import ApiRouter
from frazil.kafka.wire.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
)
from frazil.kafka.wire.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
)

logger = logging.getLogger(__name__)

DESCRIBE, ALTER = 50, 51

Deletion = AlterUserScramCredentialsRequest.ScramCredentialDeletion
Upsertion = AlterUserScramCredentialsRequest.ScramCredentialUpsertion
Described = DescribeUserScramCredentialsResponse.DescribeUserScramCredentialsResult
Outcome = tuple[ErrorCode, str | None]
DONE: Outcome = (ErrorCode.NONE, None)


class UserAdministration:
    """Owned by the event loop."""

    def __init__(self, users: Users) -> None:
        self._users = users

    def register(self, router: ApiRouter) -> None:
        router.add(DESCRIBE, "0", self.describe)
        router.add(ALTER, "0", self.alter)

    async def describe(
        self, request: DescribeUserScramCredentialsRequest, context: RequestContext
    ) -> DescribeUserScramCredentialsResponse:
        """List users and their mechanisms."""
        await self._users.refresh()
        asked = Counter(each.name for each in request.users or ())
        if asked:
            results = [self._described(name, count) for name, count in asked.items()]
        else:
            results = [self._described(name, 1) for name in sorted(self._users.table.users)]
        return DescribeUserScramCredentialsResponse(error_message=None, results=results)

    def _described(self, name: str, count: int) -> Described:
        credentials = self._users.table.users.get(name, {})
        if count > 1:
            code, why = ErrorCode.DUPLICATE_RESOURCE, f"{name} is named twice"
            return Described(user=name, error_code=code, error_message=why)
        if not credentials:
            code, why = ErrorCode.RESOURCE_NOT_FOUND, f"there is no user {name}"
            return Described(user=name, error_code=code, error_message=why)
        return Described(
            user=name,
            error_message=None,
            credential_infos=[
                DescribeUserScramCredentialsResponse.CredentialInfo(number, each.iterations)
                for number, each in sorted(credentials.items())
            ],
        )

    async def alter(
        self, request: AlterUserScramCredentialsRequest, context: RequestContext
    ) -> AlterUserScramCredentialsResponse:
        """Change credentials: all of a user's, or none of them."""
        changes: dict[str, list[Deletion | Upsertion]] = {}
        wanted: list[Deletion | Upsertion] = [*request.deletions, *request.upsertions]
        for each in wanted:
            changes.setdefault(each.name, []).append(each)
        outcomes: dict[str, Outcome] = {}

        def change(table: UserTable) -> UserTable:
            for name, of_user in changes.items():
                outcomes[name] = DONE
                try:
                    table = _changed(table, name, of_user)
                except _Refused as refused:
                    outcomes[name] = refused.code, str(refused)
                except FrazilError as error:
                    outcomes[name] = ErrorCode.UNACCEPTABLE_CREDENTIAL, str(error)
            return table

        try:
            await self._users.change(change)
        except FrazilError as error:
            outcomes = dict.fromkeys(changes, (error_code(error), str(error)))
        done = [name for name, outcome in outcomes.items() if outcome == DONE]
        logger.info("Kafka users changed", extra={"principal": context.principal, "users": done})
        return AlterUserScramCredentialsResponse(
            results=[
                AlterUserScramCredentialsResponse.AlterUserScramCredentialsResult(name, *outcome)
                for name, outcome in outcomes.items()
            ]
        )


def _changed(table: UserTable, name: str, wanted: list[Deletion | Upsertion]) -> UserTable:
    check_user_name(name)
    if len({each.mechanism for each in wanted}) < len(wanted):
        raise _Refused(
            ErrorCode.DUPLICATE_RESOURCE, f"{name} is changed twice with the same mechanism"
        )
    for each in wanted:
        try:
            mechanism = Mechanism(each.mechanism)
        except ValueError:
            raise _Refused(
                ErrorCode.UNSUPPORTED_SASL_MECHANISM, "use SCRAM-SHA-256 or SCRAM-SHA-512"
            ) from None
        if isinstance(each, Upsertion):
            if not 0 < len(each.salt) <= SALT_BYTES_MAX or not each.salted_password:
                raise Malformed(f"a salt has 1 to {SALT_BYTES_MAX} bytes, a password at least one")
            credential = credential_of(
                mechanism, bytes(each.salt), each.iterations, bytes(each.salted_password)
            )
            table = table.with_credential(name, mechanism, credential)
        elif mechanism in table.users.get(name, {}):
            table = table.without(name, mechanism)
        else:
            raise _Refused(
                ErrorCode.RESOURCE_NOT_FOUND, f"{name} has no credential for {mechanism.label}"
            )
    return table


class _Refused(Rejected):
    """A change that is refused with a code of its own."""

    def __init__(self, code: ErrorCode, message: str) -> None:
        super().__init__(message)
        self.code = code
