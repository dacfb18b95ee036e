"""IngestConfig and Auth: closed by default; incomplete protection is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from frazil.config import Config, load
from frazil.errors import Malformed
from frazil.httpd.auth import Auth
from frazil.settings import IngestConfig, is_loopback
from tests.ingest.certificates import Certificates, make_certificates


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Files:
    folder = tmp_path_factory.mktemp("files")
    return Files(folder, make_certificates(folder))


class Files:
    """Valid and invalid credential files."""

    def __init__(self, folder: Path, certificates: Certificates) -> None:
        self.names = {
            "cert": certificates.server_certificate,
            "key": certificates.server_key,
            "ca": certificates.authority,
            "other_key": certificates.client_key,
            "locked_key": certificates.locked_key,
            "folder": str(folder),
            "absent": str(folder / "absent"),
        }
        for name, content in {
            "tokens": b"0123456789abcdef\nfedcba9876543210\n",
            "empty": b"",
            "blank": b" \n\n\t\n",
            "short": b"0123456789abcde\n",
            "one_short": b"0123456789abcdef\nsecret\n",
            "spaced": b"0123456789 abcdef\n",
            "accented": "0123456789abcdéf\n".encode(),
            "control": b"0123456789abc\x00def\n",
            "many": b"".join(b"%032d\n" % n for n in range(101)),
            "words": b"not a certificate\n",
            "half": Path(certificates.server_certificate).read_bytes()[:200],
        }.items():
            path = folder / name
            path.write_bytes(content)
            self.names[name] = str(path)

    def fill(self, settings: dict[str, Any]) -> dict[str, Any]:
        """Replace `@name` with the path of that file."""
        return {
            key: self.names[value[1:]]
            if isinstance(value, str) and value.startswith("@")
            else tuple(value)
            if isinstance(value, list)
            else value
            for key, value in settings.items()
        }


TLS = {"tls_certificate_file": "@cert", "tls_key_file": "@key"}
TOKEN = {"token_file": "@tokens"}
MUTUAL = {"tls_client_ca_file": "@ca"}
OUTSIDE = {"host": "0.0.0.0"}

GOOD: dict[str, dict[str, Any]] = {
    "the defaults": {},
    "another loopback": {"host": "127.8.8.8"},
    "loopback of IPv6": {"host": "::1"},
    "localhost": {"host": "localhost"},
    "loopback with a token": TOKEN,
    "loopback with TLS": TLS,
    "outside with TLS and a token": {**OUTSIDE, **TLS, **TOKEN},
    "outside with TLS and client certificates": {**OUTSIDE, **TLS, **MUTUAL},
    "outside with all": {**OUTSIDE, **TLS, **TOKEN, **MUTUAL},
    "outside, insecure": {**OUTSIDE, "insecure": True},
    "outside, insecure, with a token": {**OUTSIDE, **TOKEN, "insecure": True},
    "any free ports": {"grpc_port": 0, "http_port": 0},
    "all origins": {"cors_origins": ["*"]},
    "no origins": {"cors_origins": []},
    "an origin with a port": {"cors_origins": ["https://shop.example:8443"]},
}

BAD: dict[str, tuple[dict[str, Any], str]] = {
    "outside alone": (OUTSIDE, "TLS is off"),
    "outside by IPv6": ({"host": "::"}, "TLS is off"),
    "outside by address": ({"host": "10.1.2.3"}, "TLS is off"),
    "outside by name": ({"host": "node.example"}, "TLS is off"),
    "outside by a name like loopback": ({"host": "127.0.0.1.example"}, "TLS is off"),
    "outside by a mapped address": ({"host": "::ffff:10.0.0.1"}, "TLS is off"),
    "outside with a token only": ({**OUTSIDE, **TOKEN}, "TLS is off"),
    "outside with TLS only": ({**OUTSIDE, **TLS}, "clients are not authenticated"),
    "no host": ({"host": ""}, "ingest.host is empty"),
    "certificate without key": ({"tls_certificate_file": "@cert"}, "need each other"),
    "key without certificate": ({"tls_key_file": "@key"}, "need each other"),
    "outside, certificate without key": (
        {**OUTSIDE, **TOKEN, "tls_certificate_file": "@cert"},
        "need each other",
    ),
    "insecure, certificate without key": (
        {"insecure": True, "tls_certificate_file": "@cert"},
        "need each other",
    ),
    "client authority without TLS": (MUTUAL, "which need TLS"),
    "insecure, client authority without TLS": ({**MUTUAL, "insecure": True}, "which need TLS"),
    "empty certificate name": ({**TLS, "tls_certificate_file": ""}, "is empty"),
    "empty key name": ({**TLS, "tls_key_file": ""}, "is empty"),
    "empty authority name": ({**TLS, "tls_client_ca_file": ""}, "is empty"),
    "empty token file name": ({"token_file": ""}, "ingest.token_file is empty"),
    "certificate absent": ({**TLS, "tls_certificate_file": "@absent"}, "cannot be read"),
    "key absent": ({**TLS, "tls_key_file": "@absent"}, "cannot be read"),
    "authority absent": ({**TLS, "tls_client_ca_file": "@absent"}, "cannot be read"),
    "token file absent": ({"token_file": "@absent"}, "cannot be read"),
    "certificate is a folder": ({**TLS, "tls_certificate_file": "@folder"}, "cannot be read"),
    "token file is a folder": ({"token_file": "@folder"}, "cannot be read"),
    "certificate file empty": ({**TLS, "tls_certificate_file": "@empty"}, "which is empty"),
    "key file empty": ({**TLS, "tls_key_file": "@empty"}, "which is empty"),
    "authority file empty": ({**TLS, "tls_client_ca_file": "@empty"}, "which is empty"),
    "token file empty": ({"token_file": "@empty"}, "which is empty"),
    "token file blank": ({"token_file": "@blank"}, "which is empty"),
    "certificate is words": ({**TLS, "tls_certificate_file": "@words"}, "not a certificate"),
    "key is words": ({**TLS, "tls_key_file": "@words"}, "not a certificate and its key"),
    "authority is words": ({**TLS, "tls_client_ca_file": "@words"}, "holds no certificate"),
    "certificate cut short": ({**TLS, "tls_certificate_file": "@half"}, "not a certificate"),
    "authority cut short": ({**TLS, "tls_client_ca_file": "@half"}, "holds no certificate"),
    "key of another certificate": ({**TLS, "tls_key_file": "@other_key"}, "not a certificate and"),
    "key with a password": ({**TLS, "tls_key_file": "@locked_key"}, "encrypted with a password"),
    "certificate and key swapped": (
        {"tls_certificate_file": "@key", "tls_key_file": "@cert"},
        "not a certificate and its key",
    ),
    "a token too short": ({"token_file": "@short"}, "a token of 15 characters"),
    "one token of two too short": ({"token_file": "@one_short"}, "a token of 6 characters"),
    "a token with a space": ({"token_file": "@spaced"}, "one token per line"),
    "a token with an accent": ({"token_file": "@accented"}, "outside ASCII"),
    "a token with a zero byte": ({"token_file": "@control"}, "no header can carry"),
    "too many tokens": ({"token_file": "@many"}, "101 tokens"),
    "grpc port too high": ({"grpc_port": 65536}, "ingest.grpc_port is 65536"),
    "http port negative": ({"http_port": -1}, "ingest.http_port is -1"),
    "both ports the same": ({"grpc_port": 4317, "http_port": 4317}, "are both 4317"),
    "no body": ({"body_bytes_max": 0}, "at least 1"),
    "negative body": ({"body_bytes_max": -1}, "at least 1"),
    "no JSON": ({"json_bytes_max": 0}, "at least 1"),
    "nothing in flight": ({"in_flight_bytes_max": 0}, "at least 1"),
    "less in flight than two bodies": ({"in_flight_bytes_max": 1 << 24}, "less than twice"),
    "no requests": ({"requests_max": 0}, "at least 1"),
    "no connections": ({"connections_max": 0}, "at least 1"),
    "no time for a body": ({"body_timeout_ms": 0}, "at least 1"),
    "an origin without a scheme": ({"cors_origins": ["shop.example"]}, "an origin must be"),
    "an origin with a path": ({"cors_origins": ["https://shop.example/"]}, "an origin must be"),
    "an origin of another scheme": ({"cors_origins": ["file://shop"]}, "an origin must be"),
    "a wildcard inside an origin": ({"cors_origins": ["https://*.example"]}, "an origin must be"),
    "an empty origin": ({"cors_origins": [""]}, "an origin must be"),
}


@pytest.mark.parametrize("name", GOOD)
def test_valid_settings_are_accepted(name: str, files: Files) -> None:
    Auth.load(IngestConfig(**files.fill(GOOD[name])))


@pytest.mark.parametrize("name", BAD)
def test_invalid_settings_are_refused_with_a_reason(name: str, files: Files) -> None:
    settings, wanted = BAD[name]
    with pytest.raises(Malformed, match=wanted):
        Auth.load(IngestConfig(**files.fill(settings)))


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("[ingest]\nhots = '0.0.0.0'", "ingest.hots is not a setting; did you mean ingest.host\\?"),
        ("[ingset]\nhost = '0.0.0.0'", "ingset is not a table of settings; did you mean ingest"),
        ("[ingest]\nhost = 7", "toml: ingest.host is 7; it must be a string"),
        ("[ingest]\ninsecure = 'yes'", "ingest.insecure is 'yes'; it must be true or false"),
        ("[ingest]\ngrpc_port = '4317'", "ingest.grpc_port is '4317'; it must be an integer"),
        ("[ingest]\nhost = '0.0.0.0'", "TLS is off"),
        ("[ingest", "is not TOML"),
        ("[log]\nbatch_bytes_max = 1048576", "toml: ingest.body_bytes_max .* does not fit into"),
    ],
)
def test_an_invalid_settings_file_is_refused(text: str, wanted: str, tmp_path: Path) -> None:
    """A misspelt protection is an error, not a missing protection."""
    path = tmp_path / "frazil.toml"
    path.write_text(text)
    with pytest.raises(Malformed, match=wanted):
        load(str(path), {})


def test_flags_override_the_file(tmp_path: Path) -> None:
    """Other settings of the file stay."""
    path = tmp_path / "frazil.toml"
    path.write_text("data = 'there'\n[ingest]\ngrpc_port = 1\nhttp_port = 2\n")
    config = load(str(path), {"ingest": {"grpc_port": 3}, "data": "here"})
    assert (config.data, config.ingest.grpc_port, config.ingest.http_port) == ("here", 3, 2)


def test_a_missing_settings_file_is_named_in_the_error(tmp_path: Path) -> None:
    with pytest.raises(Malformed, match="absent cannot be read"):
        load(str(tmp_path / "absent"), {})


def test_the_default_settings_are_valid() -> None:
    assert Config().ingest.host == "127.0.0.1"


@pytest.mark.parametrize(
    ("host", "wanted"),
    [("127.0.0.1", True), ("::1", True), ("localhost", True), ("0.0.0.0", False), ("::", False)],
)
def test_loopback_addresses_are_recognised(host: str, wanted: bool) -> None:
    assert is_loopback(host) is wanted
