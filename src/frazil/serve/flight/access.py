"""Who may call: a token, as bearer, or as the password of any user. And how many at a time."""

from __future__ import annotations

import base64
import binascii
import threading
from collections.abc import Mapping, Sequence
from typing import Any

from pyarrow import flight

from frazil.httpd import Auth
from frazil.metrics import Counter
from frazil.model import Clock
from frazil.serve.api.statements import who_of

BASIC, BEARER = "basic ", "bearer "
PAUSE_S = 0.25
PAUSED_MAX = 16
"""A wrong token is answered after a pause; more at a time are refused at once."""
ACCESS = "access"
"""Name of the middleware."""

MISSING = (
    "this node requires a token: send it as the header Authorization: Bearer <token>, or as the "
    "password, with any user name"
)
WRONG = "the token is wrong: send one of serve.token_file or ingest.token_file of this node"
STATEMENTS_DENIED = (
    "this token may not send statements, or no one may; serve.statements_token_file names the "
    "file with tokens that may"
)
CALLS_FULL = "{} calls are running, the limit flight.calls_max; retry in a moment"

DENIED = Counter("frazil.flight.denials", "Calls of Flight SQL without a valid token.")
CALLS = Counter("frazil.flight.calls", "Calls of Flight SQL, by method.")


class CallAccess(flight.ServerMiddleware):  # type: ignore[misc]
    """One call, and who sends it."""

    def __init__(self, gate: CallGate, authorization: str | None) -> None:
        super().__init__()
        self._gate = gate
        self._authorization = authorization

    @property
    def who(self) -> str:
        return who_of(self._authorization)

    def check_statements(self) -> None:
        """Raise unless this client may send statements."""
        auth = self._gate.statements_auth
        if auth is None or not auth.knows(self._authorization):
            raise flight.FlightUnauthorizedError(STATEMENTS_DENIED)

    def sending_headers(self) -> dict[str, str]:
        """Give the client its token, to send instead of the password."""
        return {} if self._authorization is None else {"authorization": self._authorization}

    def call_completed(self, exception: BaseException | None) -> None:
        self._gate.leave()


class CallGate(flight.ServerMiddlewareFactory):  # type: ignore[misc]
    """Lets calls in. Thread-safe."""

    def __init__(
        self, auth: Auth, statements_auth: Auth | None, *, calls_max: int, clock: Clock
    ) -> None:
        super().__init__()
        self.statements_auth = statements_auth
        self._auth = auth
        self._calls_max = calls_max
        self._clock = clock
        self._lock = threading.Lock()
        self._call_count = 0
        self._pauses = threading.BoundedSemaphore(PAUSED_MAX)

    def start_call(self, info: Any, headers: Mapping[str, Sequence[Any]]) -> CallAccess:
        """Check the token of a call, and count it."""
        CALLS.add(method=info.method.name.lower())
        authorization = bearer_of(headers)
        if not self._auth.knows(authorization):
            self._deny(authorization)
        with self._lock:
            if self._call_count >= self._calls_max:
                raise flight.FlightUnavailableError(CALLS_FULL.format(self._call_count))
            self._call_count += 1
        return CallAccess(self, authorization if self._auth.tokens else None)

    def leave(self) -> None:
        with self._lock:
            self._call_count -= 1

    def _deny(self, authorization: str | None) -> None:
        DENIED.add()
        if not self._pauses.acquire(blocking=False):
            raise flight.FlightUnavailableError("too many calls with wrong tokens; retry later")
        try:
            self._clock.sleep(PAUSE_S)
        finally:
            self._pauses.release()
        raise flight.FlightUnauthenticatedError(MISSING if authorization is None else WRONG)


class NoHandshake(flight.ServerAuthHandler):  # type: ignore[misc]
    """A handshake succeeds without a word: the middleware has seen its headers."""

    def authenticate(self, outgoing: Any, incoming: Any) -> None:
        return

    def is_valid(self, token: bytes) -> bytes:
        return b""


def bearer_of(headers: Mapping[str, Sequence[Any]]) -> str | None:
    """Return the `Authorization` header; a password becomes a bearer token. None if there is
    none."""
    values = [
        value
        for name, given in headers.items()
        if name.lower() == "authorization"
        for value in given
    ]
    if not values:
        return None
    text = values[0].decode("latin-1") if isinstance(values[0], bytes) else str(values[0])
    if text[: len(BASIC)].lower() != BASIC:
        return text
    try:
        decoded = base64.b64decode(text[len(BASIC) :], validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        return text
    return f"Bearer {decoded.partition(':')[2]}"
