"""A test authority with server and client certificates."""

from __future__ import annotations

import datetime
import ipaddress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

NOW = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
YEARS = datetime.timedelta(days=3650)


@dataclass(frozen=True, slots=True, kw_only=True)
class Certificates:
    """Paths of PEM files. The stranger's certificate is signed by an unknown authority."""

    authority: str
    server_certificate: str
    server_key: str
    client_certificate: str
    client_key: str
    stranger_certificate: str
    stranger_key: str
    locked_key: str


def make_certificates(
    folder: Path, begin: datetime.datetime = NOW, length: datetime.timedelta = YEARS
) -> Certificates:
    """Write the files to a folder, valid from `begin` for `length`."""
    issue = partial(_issue, begin=begin, length=length)
    authority_key, authority = issue("authority", None)
    _, unknown_authority = other = issue("another authority", None)
    server_key, server = issue("127.0.0.1", (authority_key, authority))
    client_key, client = issue("client", (authority_key, authority))
    stranger_key, stranger = issue("stranger", other)
    assert unknown_authority.issuer == stranger.issuer
    return Certificates(
        authority=_write(folder / "ca.pem", _pem(authority)),
        server_certificate=_write(folder / "server.pem", _pem(server)),
        server_key=_write(folder / "server.key", _key_pem(server_key)),
        client_certificate=_write(folder / "client.pem", _pem(client)),
        client_key=_write(folder / "client.key", _key_pem(client_key)),
        stranger_certificate=_write(folder / "stranger.pem", _pem(stranger)),
        stranger_key=_write(folder / "stranger.key", _key_pem(stranger_key)),
        locked_key=_write(folder / "locked.key", _key_pem(server_key, password=b"secret")),
    )


Issuer = tuple[ec.EllipticCurvePrivateKey, x509.Certificate]


def _issue(
    name: str,
    issuer: Issuer | None,
    *,
    begin: datetime.datetime,
    length: datetime.timedelta,
) -> Issuer:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer[1].subject if issuer else subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(begin)
        .not_valid_after(begin + length)
        .add_extension(x509.BasicConstraints(ca=issuer is None, path_length=None), critical=True)
    )
    if issuer:
        names = [
            x509.DNSName("localhost"),
            x509.IPAddress(ipaddress.ip_address("127.0.0.1")),
        ]
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
    return key, builder.sign(issuer[0] if issuer else key, hashes.SHA256())


def _write(path: Path, content: bytes) -> str:
    path.write_bytes(content)
    return str(path)


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _key_pem(key: ec.EllipticCurvePrivateKey, password: bytes | None = None) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(password)
        if password
        else serialization.NoEncryption(),
    )
