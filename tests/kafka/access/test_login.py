"""Login on an open port: PLAIN with a token, SCRAM with a user, again on the same connection."""

from __future__ import annotations

import hashlib
import random
import ssl
from pathlib import Path
from typing import Any

import pytest

from frazil.disk import RealDisk
from frazil.httpd import Auth
from frazil.kafka.access.principals import certificate_principal
from frazil.kafka.access.scram import Mechanism, new_credential
from frazil.kafka.access.users import UserFile
from frazil.kafka.wire.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
)
from frazil.kafka.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from frazil.kafka.wire.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
)
from frazil.kafka.wire.messages.metadata import MetadataRequest, MetadataResponse
from frazil.kafka.wire.messages.sasl_authenticate import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
)
from frazil.kafka.wire.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from frazil.model import SystemClock
from frazil.settings import IngestConfig, TopicConfig
from tests.ingest.certificates import make_certificates
from tests.kafka.access.test_scram import proof_of
from tests.kafka.port.opened import Client, OpenedPort, opened

TOKEN = b"0123456789abcdef"
FAILED, ILLEGAL_STATE, UNSUPPORTED = 58, 34, 33
DUPLICATE, NOT_FOUND, UNACCEPTABLE = 92, 91, 93

Upsertion = AlterUserScramCredentialsRequest.ScramCredentialUpsertion
Deletion = AlterUserScramCredentialsRequest.ScramCredentialDeletion


def shake(client: Client, mechanism: str) -> SaslHandshakeResponse:
    return client.ask(SaslHandshakeResponse, SaslHandshakeRequest(mechanism), 1)


def authenticate(client: Client, message: bytes) -> SaslAuthenticateResponse:
    return client.ask(SaslAuthenticateResponse, SaslAuthenticateRequest(message), 2)


def log_in(
    client: Client, user: str, password: str, mechanism: Mechanism = Mechanism.SHA_256
) -> SaslAuthenticateResponse:
    """Log in by SCRAM. Returns the last response, after its signature was checked."""
    assert shake(client, mechanism.label).error_code == 0
    first = f"n,,n={user},r=abc".encode()
    challenge = authenticate(client, first)
    assert challenge.error_code == 0
    message, signature = proof_of(mechanism, password, first, bytes(challenge.auth_bytes))
    last = authenticate(client, message)
    assert last.error_code or last.auth_bytes == signature
    return last


def add_user(folder: Path, name: str, password: str, mechanism: Mechanism) -> None:
    """As `frazil users add` does, beside the node."""
    credential = new_credential(mechanism, password, random.SystemRandom())
    file = UserFile(RealDisk(folder), random.SystemRandom(), SystemClock())
    file.change(lambda table: table.with_credential(name, mechanism, credential))


def is_let_in(client: Client) -> bool:
    client.send(MetadataRequest(topics=None), 9)
    try:
        return client.receive(MetadataResponse, 9)[1].cluster_id is not None
    except ConnectionError:
        return False


def principal_of(port: OpenedPort, client: Client) -> str:
    (found,) = [
        each.state.principal
        for each in port._kafka._shared.active
        if each.state.client.port == client.socket.getsockname()[1]
    ]
    return found


@pytest.mark.parametrize("mechanism", Mechanism)
def test_scram(tmp_path: Path, mechanism: Mechanism) -> None:
    """A user that is added while the port is open can log in; nobody else can."""
    with opened(tmp_path, scram=True) as port:
        with port.client() as client:
            assert client.ask(ApiVersionsResponse, ApiVersionsRequest(), 0).error_code == 0
            assert log_in(client, "alice", "secret", mechanism).error_code == FAILED
            add_user(tmp_path, "alice", "secret", mechanism)
            assert log_in(client, "alice", "wrong", mechanism).error_code == FAILED
            assert log_in(client, "bob", "secret", mechanism).error_code == FAILED
            assert log_in(client, "alice", "secret", mechanism).error_code == 0
            assert is_let_in(client)
            assert principal_of(port, client) == "User:alice"
        with port.client() as client:
            assert not is_let_in(client)


def test_who_does_not_exist_is_told_the_same(tmp_path: Path) -> None:
    """Salt and iterations as of a user, each time the same; the same refusal."""
    add_user(tmp_path, "alice", "secret", Mechanism.SHA_256)
    seen = []
    with opened(tmp_path, scram=True) as port:
        for user in ("alice", "mallory", "mallory"):
            with port.client() as client:
                shake(client, "SCRAM-SHA-256")
                challenge = authenticate(client, f"n,,n={user},r=abc".encode())
                fields = bytes(challenge.auth_bytes).split(b",")
                refused = log_in(client, user, "wrong")
                seen.append((fields[1:], refused.error_code, refused.error_message))
    (alice, *alice_refusal), (mallory, *refusal), again = seen
    assert mallory == again[0] != alice
    assert [len(field) for field in mallory] == [len(field) for field in alice]
    assert refusal == alice_refusal


def test_mechanisms(tmp_path: Path) -> None:
    """As the settings say; a message before the handshake is refused."""
    auth = Auth(tokens=(TOKEN,))
    for tokens, scram, expected in (
        (None, False, []),
        (auth, False, ["PLAIN"]),
        (None, True, ["SCRAM-SHA-256", "SCRAM-SHA-512"]),
        (auth, True, ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]),
    ):
        with opened(tmp_path, auth=tokens, scram=scram) as port, port.client() as client:
            response = shake(client, "GSSAPI")
            assert response.mechanisms == expected
            assert response.error_code == (UNSUPPORTED if expected else ILLEGAL_STATE)
            assert authenticate(client, b"\0a\0" + TOKEN).error_code == ILLEGAL_STATE


def test_a_token_has_no_other_name(tmp_path: Path) -> None:
    """Whoever has a token could call itself anything, also a super user."""
    with opened(tmp_path, auth=Auth(tokens=(TOKEN,))) as port, port.client() as client:
        shake(client, "PLAIN")
        assert authenticate(client, b"\0admin\0wrong-token").error_code == FAILED
        assert authenticate(client, b"\0admin\0" + TOKEN).error_code == 0
        assert principal_of(port, client) == "User:token"
        assert is_let_in(client)


def test_a_session_ends_unless_it_is_renewed(tmp_path: Path) -> None:
    """On the same connection, by the same user; a request after its end closes the connection."""
    for name in ("alice", "bob"):
        add_user(tmp_path, name, "secret", Mechanism.SHA_256)
    lifetime_ms = 3_600_000
    settings: dict[str, Any] = {"scram": True, "session_lifetime_ms": lifetime_ms}
    with opened(tmp_path, **settings) as port, port.client() as client:
        assert log_in(client, "alice", "secret").session_lifetime_ms == lifetime_ms
        (connection,) = port._kafka._shared.active
        first_end = connection.state.expires_s
        assert log_in(client, "bob", "secret").error_code == FAILED
        assert log_in(client, "alice", "secret").error_code == 0
        assert first_end is not None and connection.state.expires_s is not None
        assert connection.state.expires_s > first_end
        assert is_let_in(client)
        connection.state.expires_s = 0.0
        assert log_in(client, "alice", "secret").error_code == 0, "can still be renewed"
        connection.state.expires_s = 0.0
        assert not is_let_in(client)


def test_users_by_the_apis(tmp_path: Path) -> None:
    """What a tool of Kafka sends is a login afterwards; each user succeeds or fails as a whole."""

    def upsertion(name: str, mechanism: int = 1, iterations: int = 4096) -> Upsertion:
        salted = hashlib.pbkdf2_hmac("sha256", b"secret", b"salt", iterations)
        return Upsertion(name, mechanism, iterations, b"salt", salted)

    def alter(client: Client, *changes: Upsertion | Deletion) -> dict[str, int]:
        request = AlterUserScramCredentialsRequest(
            upsertions=[each for each in changes if isinstance(each, Upsertion)],
            deletions=[each for each in changes if isinstance(each, Deletion)],
        )
        response = client.ask(AlterUserScramCredentialsResponse, request, 0)
        return {each.user: each.error_code for each in response.results}

    def described(client: Client, *names: str) -> dict[str, int | list[int]]:
        users = [DescribeUserScramCredentialsRequest.UserName(name) for name in names]
        request = DescribeUserScramCredentialsRequest(users=users)
        response = client.ask(DescribeUserScramCredentialsResponse, request, 0)
        return {
            each.user: each.error_code or [c.mechanism for c in each.credential_infos]
            for each in response.results
        }

    with opened(tmp_path) as port, port.client() as client:
        assert alter(
            client,
            *(upsertion("alice"), upsertion("weak", iterations=4095), upsertion("odd", 9)),
            *(upsertion("twice"), upsertion("twice"), upsertion("token"), Deletion("gone", 1)),
        ) == {
            "alice": 0,
            "weak": UNACCEPTABLE,
            "odd": UNSUPPORTED,
            "twice": DUPLICATE,
            "token": UNACCEPTABLE,
            "gone": NOT_FOUND,
        }
        assert described(client) == {"alice": [1]}
        assert described(client, "alice", "weak") == {"alice": [1], "weak": NOT_FOUND}
    with opened(tmp_path, scram=True) as port, port.client() as client:
        assert log_in(client, "alice", "secret").error_code == 0
        assert alter(client, Deletion("alice", 1)) == {"alice": 0}
        assert described(client) == {}
        with port.client() as other:
            assert log_in(other, "alice", "secret").error_code == FAILED


def test_the_principal_of_a_certificate() -> None:
    """As Java writes it: the most specific part first, special characters escaped."""
    subject = (
        (("countryName", "DE"),),
        (("organizationName", "Ice, Snow & Co"),),
        (("organizationalUnitName", "ops"),),
        (("commonName", "alice"),),
    )
    expected = "User:CN=alice,OU=ops,O=Ice\\, Snow & Co,C=DE"
    assert certificate_principal({"subject": subject}) == expected
    assert certificate_principal({}) == certificate_principal(None) == "User:ANONYMOUS"


def test_a_certificate_is_a_principal(tmp_path: Path) -> None:
    """The name in the certificate is who a client is for ACLs; without one nobody gets in."""
    certificates = make_certificates(tmp_path)
    auth = Auth.load(
        IngestConfig(
            tls_certificate_file=certificates.server_certificate,
            tls_key_file=certificates.server_key,
            tls_client_ca_file=certificates.authority,
        )
    )
    context = ssl.create_default_context(cafile=certificates.authority)
    settings: dict[str, Any] = {"acls": True, "super_users": ("User:CN=client",)}
    with opened(tmp_path / "data", auth=auth, **settings) as port:
        port.log.create_topic("t", TopicConfig())
        with port.client() as client, pytest.raises((ssl.SSLError, ConnectionError)):
            client.socket = context.wrap_socket(client.socket, server_hostname="127.0.0.1")
            client.ask(ApiVersionsResponse, ApiVersionsRequest(), 0)
        context.load_cert_chain(certificates.client_certificate, certificates.client_key)
        with port.client() as client:
            client.socket = context.wrap_socket(client.socket, server_hostname="127.0.0.1")
            listed = client.ask(MetadataResponse, MetadataRequest(topics=None), 12)
            assert [each.name for each in listed.topics] == ["t"]
