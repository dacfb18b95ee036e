"""Login: SASL. PLAIN with a token of the node as password, SCRAM with the name and password of a
user.

A client logs in with SaslHandshake, which chooses the mechanism, and one (PLAIN) or two (SCRAM)
SaslAuthenticate. With `kafka.session_lifetime_ms` it does so again on the same connection (KIP-368)
before its session ends.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from frazil.errors import Malformed, Overloaded, Unauthenticated
from frazil.httpd import Auth
from frazil.kafka.access.scram import Mechanism, ScramExchange, parse_first
from frazil.kafka.access.users import TOKEN_USER, Users
from frazil.kafka.context import ConnectionState, RequestContext
from frazil.kafka.error_codes import ErrorCode
from frazil.kafka.router import ApiRouter
from frazil.kafka.wire.messages.sasl_authenticate import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
)
from frazil.kafka.wire.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from frazil.model import Rand

PLAIN = "PLAIN"
SCRAM = {mechanism.label: mechanism for mechanism in Mechanism}
HANDSHAKE, AUTHENTICATE = 17, 36
KEPT = "login"

NO_LOGIN = "this node requires no authentication"
NO_HANDSHAKE = "choose a mechanism with SaslHandshake first"
NOT_PLAIN = "SASL PLAIN takes a user name, and one of the tokens of ingest.token_file as password"
WRONG_TOKEN = "the password is not one of the tokens of ingest.token_file of this node"
WRONG_PASSWORD = "the user name or the password is wrong"
OTHER_USER = "a connection cannot change its user: open another one"


@dataclass(slots=True)
class _SaslState:
    """Where the login of a connection is."""

    mechanism: str
    exchange: ScramExchange | None = None

    def close(self) -> None:
        """Nothing to give back."""


class Login:
    """Owned by the event loop."""

    def __init__(
        self, auth: Auth, users: Users | None, rand: Rand, session_lifetime_ms: int = 0
    ) -> None:
        """Without `users` there is no SCRAM. Without tokens as well, nobody needs to log in."""
        self._auth = auth
        self._users = users
        self._rand = rand
        self._session_lifetime_ms = session_lifetime_ms
        self._mechanisms = [PLAIN] if auth.tokens else []
        if users is not None:
            self._mechanisms += SCRAM

    @property
    def is_required(self) -> bool:
        return bool(self._mechanisms)

    def register(self, router: ApiRouter) -> None:
        # librdkafka 2.0 takes SASL to be missing unless version 0 is named. It sends 1.
        router.add(HANDSHAKE, "1", self.handshake, needs_login=False, advertised="0-1")
        router.add(AUTHENTICATE, "0-2", self.authenticate, needs_login=False)

    async def handshake(
        self, request: SaslHandshakeRequest, context: RequestContext
    ) -> SaslHandshakeResponse:
        """Agree on a mechanism."""
        code = ErrorCode.NONE
        if not self._mechanisms:
            code = ErrorCode.ILLEGAL_SASL_STATE
        elif request.mechanism not in self._mechanisms:
            code = ErrorCode.UNSUPPORTED_SASL_MECHANISM
        else:
            context.connection.kept[KEPT] = _SaslState(request.mechanism)
        return SaslHandshakeResponse(code, list(self._mechanisms))

    async def authenticate(
        self, request: SaslAuthenticateRequest, context: RequestContext
    ) -> SaslAuthenticateResponse:
        """Take one message of the login. What is wrong is answered after a pause."""
        if not self._mechanisms:
            return _refusal(ErrorCode.ILLEGAL_SASL_STATE, NO_LOGIN)
        state = context.connection.kept.get(KEPT)
        if state is None:
            return _refusal(ErrorCode.ILLEGAL_SASL_STATE, NO_HANDSHAKE)
        assert isinstance(state, _SaslState)
        if state.mechanism == PLAIN:
            return await self._plain(request.auth_bytes, context.connection)
        try:
            return await self._scram(request.auth_bytes, state, context.connection)
        except Malformed as error:
            state.exchange = None
            return await self._denied(str(error))

    async def _plain(self, message: bytes, connection: ConnectionState) -> SaslAuthenticateResponse:
        parts = message.split(b"\0")
        if len(parts) != 3:
            return await self._denied(NOT_PLAIN)
        token = parts[2].decode("utf-8", "surrogateescape")
        if not self._auth.knows(f"Bearer {token}"):
            return await self._denied(WRONG_TOKEN)
        # Whoever has a token may call itself anything: the name says nothing.
        return self._accepted(TOKEN_USER, connection)

    async def _scram(
        self, message: bytes, state: _SaslState, connection: ConnectionState
    ) -> SaslAuthenticateResponse:
        users = self._users
        assert users is not None
        exchange = state.exchange
        if exchange is None:
            first = parse_first(message)
            await users.refresh()
            mechanism = SCRAM[state.mechanism]
            credential, is_known = users.find(first.user, mechanism)
            state.exchange = exchange = ScramExchange(
                mechanism, first, credential, is_known=is_known, rand=self._rand
            )
            return SaslAuthenticateResponse(error_message=None, auth_bytes=exchange.challenge)
        state.exchange = None
        proof = exchange.finish(message)
        if proof is None:
            return await self._denied(WRONG_PASSWORD)
        return self._accepted(exchange.user, connection, proof)

    def _accepted(
        self, user: str, connection: ConnectionState, proof: bytes = b""
    ) -> SaslAuthenticateResponse:
        principal = f"User:{user}"
        if connection.has_logged_in and connection.principal != principal:
            return _refusal(ErrorCode.SASL_AUTHENTICATION_FAILED, OTHER_USER)
        lifetime_ms = self._session_lifetime_ms
        connection.principal = principal
        connection.is_authenticated = connection.has_logged_in = True
        if lifetime_ms:
            connection.expires_s = asyncio.get_running_loop().time() + lifetime_ms / 1000
        return SaslAuthenticateResponse(
            error_message=None, auth_bytes=proof, session_lifetime_ms=lifetime_ms
        )

    async def _denied(self, why: str) -> SaslAuthenticateResponse:
        try:
            await self._auth.deny("")
        except (Unauthenticated, Overloaded):
            return _refusal(ErrorCode.SASL_AUTHENTICATION_FAILED, why)


def _refusal(code: ErrorCode, message: str) -> SaslAuthenticateResponse:
    return SaslAuthenticateResponse(error_code=code, error_message=message)
