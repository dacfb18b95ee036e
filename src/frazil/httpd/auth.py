"""Auth: tokens and certificates, read once at start. A file that cannot be used stops the start."""

from __future__ import annotations

import asyncio
import base64
import hmac
import ssl
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn, Protocol

from frazil.errors import Malformed, Overloaded, Unauthenticated
from frazil.metrics import Counter

TOKEN_LENGTH_MIN = 16
"""Shorter tokens can be guessed; 16 random characters cannot."""
TOKENS_MAX = 100
"""Each request is compared with every token."""
SCHEME = "bearer "
BASIC_SCHEME = "basic "

PAUSE_S = 0.25
PAUSED_MAX = 64
"""A wrong token is answered after PAUSE_S, at most PAUSED_MAX at a time: 256 guesses a second,
at no cost to other clients."""

MISSING = (
    "this node requires a token: send the header Authorization: Bearer <token>; commands take it "
    "from --token-file or FRAZIL_TOKEN"
)
WRONG = (
    "the token is wrong: send one of serve.token_file or ingest.token_file of this node (for "
    "statements: serve.statements_token_file) in the header Authorization: Bearer <token>; "
    "commands take it from --token-file or FRAZIL_TOKEN"
)

DENIED = Counter("frazil.ingest.access.denials", "Requests without a valid token.")


class CredentialFiles(Protocol):
    """The settings that name credential files: PEM, or one token per line."""

    @property
    def token_file(self) -> str | None: ...
    @property
    def tls_certificate_file(self) -> str | None: ...
    @property
    def tls_key_file(self) -> str | None: ...
    @property
    def tls_client_ca_file(self) -> str | None: ...


@dataclass(slots=True, kw_only=True)
class Auth:
    """The credentials of both ports. Owned by the event loop."""

    tokens: tuple[bytes, ...] = ()
    certificate: bytes | None = None
    key: bytes | None = None
    client_ca: bytes | None = None
    tls: ssl.SSLContext | None = None
    _paused_count: int = field(default=0, init=False)

    @classmethod
    def load(cls, config: CredentialFiles) -> Auth:
        """Read the files named by `config`. Raises `Malformed` when one is missing or invalid."""
        auth = cls(
            tokens=_tokens(config.token_file) if config.token_file else (),
            certificate=_read(config.tls_certificate_file, "ingest.tls_certificate_file"),
            key=_read(config.tls_key_file, "ingest.tls_key_file"),
            client_ca=_read(config.tls_client_ca_file, "ingest.tls_client_ca_file"),
        )
        if auth.certificate is not None:
            auth.tls = _tls(config)
        return auth

    def knows(self, authorization: str | None) -> bool:
        """Return whether this header carries a valid token. Always true without tokens.

        Runs in constant time: the duration does not depend on the token or where it differs.
        """
        if not self.tokens:
            return True
        token = b""
        if authorization is not None and authorization[: len(SCHEME)].lower() == SCHEME:
            token = authorization[len(SCHEME) :].strip().encode("utf-8", "surrogateescape")
        matches = [hmac.compare_digest(token, known) for known in self.tokens]
        return any(matches)

    async def deny(self, authorization: str | None) -> NoReturn:
        """Refuse a request with this header, after a pause."""
        DENIED.add()
        if self._paused_count >= PAUSED_MAX:
            raise Overloaded("too many requests with wrong tokens; retry later")
        self._paused_count += 1
        try:
            await asyncio.sleep(PAUSE_S)
        finally:
            self._paused_count -= 1
        raise Unauthenticated(MISSING if authorization is None else WRONG)


def bearer_of_basic(authorization: str | None) -> str | None:
    """Return a header of HTTP's basic authentication as one with the password as token; any other
    as it is."""
    if authorization is None or authorization[: len(BASIC_SCHEME)].lower() != BASIC_SCHEME:
        return authorization
    try:
        pair = base64.b64decode(authorization[len(BASIC_SCHEME) :].strip(), validate=True)
    except ValueError:
        return authorization
    return "Bearer " + pair.partition(b":")[2].decode("utf-8", "surrogateescape")


def _read(path: str | None, name: str) -> bytes | None:
    if path is None:
        return None
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise Malformed(f"{name} is {path}, which cannot be read: {error.strerror}") from None
    if not content.strip():
        raise Malformed(f"{name} is {path}, which is empty")
    return content


def _tokens(path: str) -> tuple[bytes, ...]:
    content = _read(path, "ingest.token_file") or b""
    tokens = tuple(dict.fromkeys(line.strip() for line in content.splitlines() if line.strip()))
    for token in tokens:
        if len(token) < TOKEN_LENGTH_MIN:
            raise Malformed(
                f"ingest.token_file {path} holds a token of {len(token)} characters; use at "
                f"least {TOKEN_LENGTH_MIN} random ones"
            )
        if not all(0x21 <= byte <= 0x7E for byte in token):
            raise Malformed(
                f"ingest.token_file {path} holds a token with a space or a character outside "
                "ASCII, which no header can carry; write one token per line"
            )
    if len(tokens) > TOKENS_MAX:
        raise Malformed(
            f"ingest.token_file {path} holds {len(tokens)} tokens; the limit is {TOKENS_MAX}"
        )
    return tokens


def _tls(config: CredentialFiles) -> ssl.SSLContext:
    """Return the TLS context of OTLP/HTTP. Checks that certificate and key match."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    assert config.tls_certificate_file is not None
    try:
        context.load_cert_chain(
            config.tls_certificate_file, config.tls_key_file, password=_no_password
        )
    except ssl.SSLError as error:
        raise Malformed(
            f"ingest.tls_certificate_file {config.tls_certificate_file} and ingest.tls_key_file "
            f"{config.tls_key_file} are not a certificate and its key in PEM: {error.reason}"
        ) from None
    if config.tls_client_ca_file is not None:
        context.verify_mode = ssl.CERT_REQUIRED
        try:
            context.load_verify_locations(config.tls_client_ca_file)
        except ssl.SSLError as error:
            raise Malformed(
                f"ingest.tls_client_ca_file {config.tls_client_ca_file} holds no certificate in "
                f"PEM: {error.reason}"
            ) from None
    return context


def _no_password() -> str:
    raise Malformed("ingest.tls_key_file is encrypted with a password; use a key without one")
