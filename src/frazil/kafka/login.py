"""Login: SASL PLAIN, with a token of the node as password. The user name is free."""

from __future__ import annotations

from frazil.errors import Overloaded, Unauthenticated
from frazil.httpd import Auth
from frazil.kafka.context import RequestContext
from frazil.kafka.error_codes import ErrorCode
from frazil.kafka.router import ApiRouter
from frazil.kafka.wire.messages.sasl_authenticate import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
)
from frazil.kafka.wire.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse

MECHANISM = "PLAIN"
HANDSHAKE, AUTHENTICATE = 17, 36
NOT_PLAIN = (
    "the node expects SASL PLAIN: a user name, and one of the tokens of ingest.token_file as "
    "password"
)
WRONG = "the password is not one of the tokens of ingest.token_file of this node"


class Login:
    """Owned by the event loop."""

    def __init__(self, auth: Auth) -> None:
        self._auth = auth

    def register(self, router: ApiRouter) -> None:
        # librdkafka 2.0 takes SASL to be missing unless version 0 is named. It sends 1.
        router.add(HANDSHAKE, "1", self.handshake, needs_login=False, advertised="0-1")
        router.add(AUTHENTICATE, "0-2", self.authenticate, needs_login=False)

    async def handshake(
        self, request: SaslHandshakeRequest, context: RequestContext
    ) -> SaslHandshakeResponse:
        """Agree on PLAIN."""
        code = ErrorCode.NONE
        if not self._auth.tokens:
            code = ErrorCode.ILLEGAL_SASL_STATE
        elif request.mechanism != MECHANISM:
            code = ErrorCode.UNSUPPORTED_SASL_MECHANISM
        return SaslHandshakeResponse(code, [MECHANISM])

    async def authenticate(
        self, request: SaslAuthenticateRequest, context: RequestContext
    ) -> SaslAuthenticateResponse:
        """Check the token. A wrong one is answered after a pause."""
        if not self._auth.tokens:
            return _refusal(ErrorCode.ILLEGAL_SASL_STATE, "this node requires no authentication")
        parts = request.auth_bytes.split(b"\0")
        if len(parts) != 3:
            return _refusal(ErrorCode.SASL_AUTHENTICATION_FAILED, NOT_PLAIN)
        user, token = (part.decode("utf-8", "surrogateescape") for part in parts[1:])
        header = f"Bearer {token}"
        if self._auth.knows(header):
            context.connection.principal = f"User:{user}"
            context.connection.is_authenticated = True
            return SaslAuthenticateResponse(error_message=None)
        try:
            await self._auth.deny(header)
        except (Unauthenticated, Overloaded):
            return _refusal(ErrorCode.SASL_AUTHENTICATION_FAILED, WRONG)


def _refusal(code: ErrorCode, message: str) -> SaslAuthenticateResponse:
    return SaslAuthenticateResponse(error_code=code, error_message=message)
