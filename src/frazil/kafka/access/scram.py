"""SCRAM (RFC 5802): proves a password without sending it.

    client                                    server
    n,,n=alice,r=<nonce>            ──>
                                    <──       r=<both nonces>,s=<salt>,i=<iterations>
    c=biws,r=<both nonces>,p=<proof>──>
                                    <──       v=<signature>

The server keeps no password: a `ScramCredential` proves that a client knows it, and is of no use to
log in.
"""

from __future__ import annotations

import base64
import binascii
import enum
import hashlib
import hmac
from typing import NamedTuple

import msgspec

from frazil.errors import Malformed
from frazil.model import Rand

ITERATIONS_MIN, ITERATIONS_MAX = 4096, 16384
"""Kafka's limits. Each client computes so many hashes to log in."""
SALT_BYTES = 26
NONCE_BYTES = 24
MESSAGE_BYTES_MAX = 4096
"""Longest message of a client. A name is much shorter."""


class Mechanism(enum.IntEnum):
    """The numbers are Kafka's."""

    SHA_256 = 1
    SHA_512 = 2

    @property
    def label(self) -> str:
        """The name in SASL."""
        return self.name.replace("SHA_", "SCRAM-SHA-")

    @property
    def hash_name(self) -> str:
        return self.name.replace("_", "").lower()

    @property
    def hash_bytes(self) -> int:
        return hashlib.new(self.hash_name).digest_size


class ScramCredential(msgspec.Struct, frozen=True, array_like=True):
    """What the server keeps of a password."""

    salt: bytes
    iterations: int
    stored_key: bytes
    server_key: bytes


def credential_of(
    mechanism: Mechanism, salt: bytes, iterations: int, salted_password: bytes
) -> ScramCredential:
    """Return the credential of a salted password, which tools of Kafka send."""
    _check_iterations(iterations)
    client_key = _hmac(mechanism, salted_password, b"Client Key")
    return ScramCredential(
        salt,
        iterations,
        hashlib.new(mechanism.hash_name, client_key).digest(),
        _hmac(mechanism, salted_password, b"Server Key"),
    )


def new_credential(
    mechanism: Mechanism, password: str, rand: Rand, iterations: int = ITERATIONS_MIN
) -> ScramCredential:
    """Return the credential of a password, with a new salt."""
    _check_iterations(iterations)  # before so many hashes are computed
    salt = rand.randbytes(SALT_BYTES)
    salted = hashlib.pbkdf2_hmac(mechanism.hash_name, password.encode(), salt, iterations)
    return credential_of(mechanism, salt, iterations, salted)


def _check_iterations(iterations: int) -> None:
    if not ITERATIONS_MIN <= iterations <= ITERATIONS_MAX:
        raise Malformed(
            f"{iterations} iterations; SCRAM takes {ITERATIONS_MIN} to {ITERATIONS_MAX} here"
        )


class ClientFirst(NamedTuple):
    """The first message of a client."""

    user: str
    nonce: str
    header: str
    """What the second message must repeat."""
    bare: str


def parse_first(message: bytes) -> ClientFirst:
    """Read the first message. Raises `Malformed`."""
    text = _text(message)
    flag, _, rest = text.partition(",")
    authorization, _, bare = rest.partition(",")
    if flag not in ("n", "y"):
        raise Malformed("channel binding is not supported")
    fields = bare.split(",")
    if len(fields) < 2 or not fields[0].startswith("n=") or not fields[1].startswith("r="):
        raise Malformed("the first SCRAM message must have a user name and a nonce")
    user, nonce = _name(fields[0][2:]), fields[1][2:]
    if not user or not nonce:
        raise Malformed("the user name or the nonce is empty")
    if authorization and authorization != f"a={fields[0][2:]}":
        raise Malformed("a client cannot act for another user")
    return ClientFirst(user, nonce, f"{flag},{authorization},", bare)


class ScramExchange:
    """From the first message of a client to its second. Ends with its connection."""

    def __init__(
        self,
        mechanism: Mechanism,
        first: ClientFirst,
        credential: ScramCredential,
        *,
        is_known: bool,
        rand: Rand,
    ) -> None:
        """Without `is_known` the credential is made up, and no proof is right."""
        self.user = first.user
        self._mechanism = mechanism
        self._first = first
        self._credential = credential
        self._is_known = is_known
        self._nonce = first.nonce + base64.b64encode(rand.randbytes(NONCE_BYTES)).decode()
        salt = base64.b64encode(credential.salt).decode()
        self._challenge = f"r={self._nonce},s={salt},i={credential.iterations}"

    @property
    def challenge(self) -> bytes:
        """The first message to the client."""
        return self._challenge.encode()

    def finish(self, message: bytes) -> bytes | None:
        """Return the last message to the client; None if its password is wrong."""
        text = _text(message)
        plain, _, proof_text = text.rpartition(",p=")
        binding, _, nonce = plain.partition(",")
        expected = f"c={base64.b64encode(self._first.header.encode()).decode()}"
        nonce = nonce.partition(",")[0]
        # librdkafka before 2.6.1 puts its own nonce in front of ours, which begins with it already.
        is_ours = _equal(nonce, f"r={self._nonce}")
        is_ours = is_ours or _equal(nonce, f"r={self._first.nonce}{self._nonce}")
        if not plain or binding != expected or not is_ours:
            raise Malformed("the second SCRAM message does not continue the first")
        try:
            proof = base64.b64decode(proof_text, validate=True)
        except (binascii.Error, ValueError):
            raise Malformed("the proof is no base64") from None
        signed = f"{self._first.bare},{self._challenge},{plain}".encode()
        mechanism, credential = self._mechanism, self._credential
        signature = _hmac(mechanism, credential.stored_key, signed)
        client_key = bytes(a ^ b for a, b in zip(proof, signature, strict=False))
        computed = hashlib.new(mechanism.hash_name, client_key).digest()
        is_equal = hmac.compare_digest(computed, credential.stored_key)
        if not is_equal or not self._is_known or len(proof) != len(signature):
            return None
        return b"v=" + base64.b64encode(_hmac(mechanism, credential.server_key, signed))


def _text(message: bytes) -> str:
    if len(message) > MESSAGE_BYTES_MAX:
        raise Malformed(f"a SCRAM message of {len(message)} bytes")
    try:
        return bytes(message).decode()
    except UnicodeDecodeError:
        raise Malformed("a SCRAM message must be UTF-8") from None


def _name(text: str) -> str:
    """Return a name whose commas and equals signs are written as =2C and =3D."""
    parts = text.split("=")
    if any(part[:2] not in ("2C", "3D") for part in parts[1:]):
        raise Malformed("the user name is not encoded as SCRAM requires")
    decoded = [{"2C": ",", "3D": "="}[part[:2]] + part[2:] for part in parts[1:]]
    return parts[0] + "".join(decoded)


def _equal(one: str, other: str) -> bool:
    return hmac.compare_digest(one.encode(), other.encode())


def _hmac(mechanism: Mechanism, key: bytes, message: bytes) -> bytes:
    return hmac.digest(key, message, mechanism.hash_name)
