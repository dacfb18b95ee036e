"""Tokens, TLS, and who may send statements."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import adbc_driver_flightsql.dbapi as adbc
import pytest
from adbc_driver_flightsql import DatabaseOptions
from pyarrow import flight

from frazil.config import InvalidConfig
from tests.ingest.certificates import Certificates, make_certificates
from tests.serve.flight.commands import descriptor, fetch, field
from tests.serve.flight.opened import connected, flight_node
from tests.serve.served import settings

READER, WRITER = "reader-0123456789", "writer-0123456789"
QUERY = field(1, "SELECT 1 AS a")
VIEW = "CREATE VIEW one AS SELECT 1 AS a"


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[int, Certificates]]:
    """A port with TLS, a token to read and another one for statements."""
    folder = tmp_path_factory.mktemp("guarded")
    files = make_certificates(folder)
    for name, token in (("reader", READER), ("writer", WRITER)):
        (folder / name).write_text(token)
    ingest = {
        "tls_certificate_file": files.server_certificate,
        "tls_key_file": files.server_key,
        "token_file": str(folder / "reader"),
    }
    serve = {"statements_token_file": str(folder / "writer")}
    with flight_node(folder / "data", ingest=ingest, serve=serve) as (_, port):
        yield port, files


def _secure(guarded: tuple[int, Certificates], **options: str) -> adbc.Connection:
    port, files = guarded
    named = {DatabaseOptions[name.upper()].value: value for name, value in options.items()}
    authority = Path(files.authority).read_text()
    return adbc.connect(
        f"grpc+tls://127.0.0.1:{port}",
        db_kwargs={DatabaseOptions.TLS_ROOT_CERTS.value: authority, **named},
        autocommit=True,
    )


def _client(guarded: tuple[int, Certificates]) -> Any:
    port, files = guarded
    authority = Path(files.authority).read_bytes()
    return flight.connect(f"grpc+tls://127.0.0.1:{port}", tls_root_certs=authority)


def _options(token: str) -> Any:
    return flight.FlightCallOptions(headers=[(b"authorization", token.encode())])


def test_a_token_is_a_bearer_or_a_password(guarded: tuple[int, Certificates]) -> None:
    """ADBC sends a header; JDBC and others a user name and password, and get a bearer back."""
    with (
        _secure(guarded, authorization_header=f"Bearer {READER}") as connection,
        connection.cursor() as cursor,
    ):
        cursor.execute("SELECT 1")
        assert cursor.fetchall() == [(1,)]
    with _client(guarded) as client:
        header, value = client.authenticate_basic_token("anyone", READER)
        assert (header, value) == (b"authorization", f"Bearer {READER}".encode())
        info = client.get_flight_info(
            descriptor("CommandStatementQuery", QUERY),
            flight.FlightCallOptions(headers=[(header, value)]),
        )
        assert info.schema.names == ["a"]


@pytest.mark.parametrize(
    "token",
    [
        "Bearer wrong-0123456789",
        "Bearer",
        f"Basic {base64.b64encode(b'user:wrong').decode()}",
        "Basic %%%",
        f"Digest {READER}",
    ],
)
def test_a_wrong_token_gets_nothing(guarded: tuple[int, Certificates], token: str) -> None:
    """No call goes through, also not a handshake; the error does not repeat the token."""
    with _client(guarded) as client:
        for call in (
            lambda: client.get_flight_info(
                descriptor("CommandStatementQuery", QUERY), _options(token)
            ),
            lambda: client.do_get(flight.Ticket(b""), _options(token)).read_all(),
            lambda: list(client.list_actions(_options(token))),
        ):
            with pytest.raises(flight.FlightUnauthenticatedError, match="token") as caught:
                call()
            assert token not in str(caught.value)
        with pytest.raises(flight.FlightUnauthenticatedError):
            client.authenticate_basic_token("user", "wrong")
        with pytest.raises(flight.FlightUnauthenticatedError, match="requires a token"):
            fetch(client, "CommandGetCatalogs")


def test_statements_need_their_own_token(guarded: tuple[int, Certificates]) -> None:
    """Who may only read is refused, before anything is carried out."""
    with (
        _secure(guarded, authorization_header=f"Bearer {READER}") as connection,
        connection.cursor() as cursor,
        pytest.raises(adbc.Error, match="statements_token_file"),
    ):
        cursor.execute(VIEW)
    with (
        _secure(guarded, authorization_header=f"Bearer {WRITER}") as connection,
        connection.cursor() as cursor,
    ):
        cursor.execute(VIEW)
        cursor.execute("SELECT who FROM statement_audit")
        ((who,),) = cursor.fetchall()
        assert who.startswith("token ")
        assert WRITER not in who


def test_plain_text_does_not_reach_a_port_with_tls(guarded: tuple[int, Certificates]) -> None:
    with (
        flight.connect(f"grpc://127.0.0.1:{guarded[0]}") as client,
        pytest.raises(flight.FlightUnavailableError),
    ):
        fetch(client, "CommandGetCatalogs")


def test_calls_are_limited(tmp_path: Path) -> None:
    """A call above the limit is refused; the count goes down when calls end."""
    with flight_node(tmp_path / "data", flight={"calls_max": 1}) as (_, port):
        text = "SELECT a.value FROM generate_series(1, 900000) a"
        with flight.connect(f"grpc://127.0.0.1:{port}") as client:
            info = client.get_flight_info(descriptor("CommandStatementQuery", field(1, text)))
            stream = client.do_get(info.endpoints[0].ticket)
            stream.read_chunk()
            with pytest.raises(flight.FlightUnavailableError, match="calls_max"):
                fetch(client, "CommandGetCatalogs")
            assert stream.read_all().num_rows > 0
        with connected(port) as connection:
            assert connection.adbc_get_table_types() == ["TABLE", "VIEW"]


def test_a_port_that_anyone_could_reach_is_not_opened(tmp_path: Path) -> None:
    """As for the Kafka port: TLS and tokens, or `insecure`."""
    with pytest.raises(InvalidConfig, match=r"flight\.host is 0\.0\.0\.0.*TLS is off"):
        settings(tmp_path, flight={"host": "0.0.0.0"})
    assert (
        settings(tmp_path, flight={"host": "0.0.0.0"}, ingest={"insecure": True}).flight_host
        == "0.0.0.0"
    )
