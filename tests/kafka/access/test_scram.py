"""SCRAM: a client of our own proves a password, and nobody else does."""

from __future__ import annotations

import base64
import hashlib
import hmac
import random
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frazil.errors import Malformed
from frazil.kafka.access.scram import (
    ITERATIONS_MIN,
    Mechanism,
    ScramCredential,
    ScramExchange,
    credential_of,
    new_credential,
    parse_first,
)
from frazil.kafka.access.users import UserTable, made_up_credential, shapes_of

PASSWORDS = st.text(min_size=1, max_size=20)
SALT = base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")


def digest(mechanism: Mechanism, key: bytes, text: bytes) -> bytes:
    return hmac.digest(key, text, mechanism.hash_name)


def proof_of(
    mechanism: Mechanism,
    password: str,
    first: bytes,
    challenge: bytes,
    header: bytes = b"n,,",
    before_nonce: bytes = b"",
) -> tuple[bytes, bytes]:
    """Return the second message of a client, and what the server must answer. From RFC 5802."""
    fields = dict(part.split("=", 1) for part in challenge.decode().split(","))
    salt, iterations = base64.b64decode(fields["s"]), int(fields["i"])
    salted = hashlib.pbkdf2_hmac(mechanism.hash_name, password.encode(), salt, iterations)
    key = digest(mechanism, salted, b"Client Key")
    stored = hashlib.new(mechanism.hash_name, key).digest()
    plain = b"c=%s,r=%s%s" % (base64.b64encode(header), before_nonce, fields["r"].encode())
    message = b",".join([first.removeprefix(header), challenge, plain])
    signature = digest(mechanism, stored, message)
    proof = bytes(a ^ b for a, b in zip(key, signature, strict=True))
    server = digest(mechanism, digest(mechanism, salted, b"Server Key"), message)
    return plain + b",p=" + base64.b64encode(proof), b"v=" + base64.b64encode(server)


def exchange(
    mechanism: Mechanism, first: bytes, credential: ScramCredential, *, is_known: bool = True
) -> ScramExchange:
    rand = random.Random(7)
    return ScramExchange(mechanism, parse_first(first), credential, is_known=is_known, rand=rand)


def test_the_example_of_the_standard() -> None:
    """RFC 7677, section 3, with its own nonces."""
    nonce = b"rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
    first = b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO"
    salted = hashlib.pbkdf2_hmac("sha256", b"pencil", SALT, 4096)
    credential = credential_of(Mechanism.SHA_256, SALT, 4096, salted)
    login = exchange(Mechanism.SHA_256, first, credential)
    login._nonce = nonce.decode()
    login._challenge = f"r={nonce.decode()},s={base64.b64encode(SALT).decode()},i=4096"
    final = b"c=biws,r=" + nonce + b",p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
    assert login.finish(final) == b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


@given(password=PASSWORDS, other=PASSWORDS, mechanism=st.sampled_from(Mechanism))
def test_only_the_password_is_accepted(password: str, other: str, mechanism: Mechanism) -> None:
    first = b"n,,n=alice,r=abc"
    credential = new_credential(mechanism, password, random.Random(1))
    for guess, is_known in ((password, True), (other, True), (password, False)):
        login = exchange(mechanism, first, credential, is_known=is_known)
        message, answer = proof_of(mechanism, guess, first, login.challenge)
        expected = answer if guess == password and is_known else None
        assert login.finish(message) == expected


def test_old_librdkafka_repeats_its_nonce() -> None:
    """Before 2.6.1. Anything else in front of the nonce is refused."""
    first = b"n,,n=alice,r=abc"
    credential = new_credential(Mechanism.SHA_512, "secret", random.Random(1))
    login = exchange(Mechanism.SHA_512, first, credential)
    for before, is_accepted in ((b"abc", True), (b"abd", False), (b"abcabc", False)):
        message, answer = proof_of(
            Mechanism.SHA_512, "secret", first, login.challenge, before_nonce=before
        )
        if is_accepted:
            assert login.finish(message) == answer
        else:
            with pytest.raises(Malformed):
                login.finish(message)


@given(st.data())
def test_a_changed_message_is_refused(data: st.DataObject) -> None:
    first = b"y,,n=alice,r=abc"
    credential = new_credential(Mechanism.SHA_256, "secret", random.Random(1))
    login = exchange(Mechanism.SHA_256, first, credential)
    message = bytearray(proof_of(Mechanism.SHA_256, "secret", first, login.challenge, b"y,,")[0])
    place = data.draw(st.integers(0, len(message) - 1))
    old = message[place]
    message[place] = data.draw(st.integers(0, 255).filter(lambda byte: byte != old))
    with suppress(Malformed):
        # The last character of base64 has bits that mean nothing.
        assert login.finish(bytes(message)) is None or place == len(message) - 2


@given(st.one_of(st.binary(max_size=60), st.text(alphabet="nyparc=,2CD\x00é", max_size=40)))
def test_any_first_message(message: bytes | str) -> None:
    """It is read, or refused as malformed."""
    data = message if isinstance(message, bytes) else message.encode()
    try:
        first = parse_first(data)
    except Malformed:
        return
    assert first.user and first.nonce and data.decode() == first.header + first.bare


@pytest.mark.parametrize(
    ("message", "user"),
    [
        (b"n,,n=a=2Cb=3Dc,r=x", "a,b=c"),
        (b"n,a=bob,n=bob,r=x", "bob"),
        (b"n,,n=bob,r=x,tokenauth=true", "bob"),
    ],
)
def test_names(message: bytes, user: str) -> None:
    assert parse_first(message).user == user


@pytest.mark.parametrize(
    "message", [b"p=tls-unique,,n=a,r=x", b"n,a=root,n=a,r=x", b"n,,n=a=2cb,r=x", b"n,,n=a,r="]
)
def test_first_messages_that_are_refused(message: bytes) -> None:
    with pytest.raises(Malformed):
        parse_first(message)


@pytest.mark.parametrize("iterations", [4095, 16385])
def test_iterations_are_bounded(iterations: int) -> None:
    with pytest.raises(Malformed, match="4096 to 16384"):
        new_credential(Mechanism.SHA_512, "secret", random.Random(1), iterations)


def test_an_unknown_user_looks_like_others() -> None:
    """The same salt each time, as long as those in use, with the same characters."""
    mechanism = Mechanism.SHA_256
    text = ScramCredential(b"abc123" * 4, 8192, b"", b"")
    table = UserTable(b"secret", {})
    for number in range(5):
        table = table.with_credential(f"user{number}", mechanism, text)
    shapes = shapes_of(table, mechanism)
    found = made_up_credential("mallory", mechanism, table.secret, shapes)
    assert (found.iterations, len(found.salt), found.salt.isalnum()) == (8192, 24, True)
    assert found == made_up_credential("mallory", mechanism, table.secret, shapes)
    others = {made_up_credential(f"m{n}", mechanism, b"secret", shapes).salt for n in range(50)}
    assert len(others) == 50
    assert made_up_credential("x", mechanism, b"secret", []).iterations == ITERATIONS_MIN
