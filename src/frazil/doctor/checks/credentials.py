"""Certificates, keys and tokens, checked before a node fails to start with them."""

from __future__ import annotations

import os
import shlex
import ssl
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from frazil.doctor.context import CheckContext
from frazil.doctor.finding import (
    Finding,
    do,
    failure,
    note,
    ok,
    run,
    run_as_root,
    set_to,
    warning,
)
from frazil.errors import Malformed
from frazil.httpd import Auth
from frazil.settings import is_loopback

SOON_DAYS = 14
"""Time needed to get a new certificate."""
EXPIRED = 10
NOT_YET_VALID = 9
"""Error codes of OpenSSL."""
OTHERS = 0o007
SECRETS = ("tls_key_file", "token_file")


def check_access(context: CheckContext) -> Iterator[Finding]:
    """Check that files are readable, match and are valid, and that secrets are private."""
    ingest = context.config.ingest
    files = {
        f"ingest.{name}": Path(path)
        for name in ("tls_certificate_file", "tls_key_file", "tls_client_ca_file", "token_file")
        if (path := getattr(ingest, name)) is not None
    }
    serve = context.config.serve
    for name in ("token_file", "statements_token_file"):
        if (path := getattr(serve, name)) is not None:
            files[f"serve.{name}"] = Path(path)
    unreadable = [finding for name, path in files.items() for finding in _unreadable(name, path)]
    yield from unreadable
    if not unreadable:
        yield from _contents(context)
    for name, path in files.items():
        exists = os.access(path, os.F_OK, effective_ids=True)
        if name.endswith(SECRETS) and exists and path.stat().st_mode & OTHERS:
            text = f"{name} {path} is readable by every user of this machine"
            yield warning("secrets", text, run(f"chmod o-rwx {shlex.quote(str(path))}"))
    if ingest.insecure and not is_loopback(ingest.host):
        text = f"other machines can reach {ingest.host}, without TLS and authentication"
        yield warning("access", text, set_to("ingest.host", "127.0.0.1", "--host 127.0.0.1"))
    elif not files:
        yield ok("access", f"only this machine can reach {ingest.host}")


def _unreadable(name: str, path: Path) -> Iterator[Finding]:
    quoted = shlex.quote(str(path))
    if not os.access(path, os.F_OK, effective_ids=True):
        fix = do(f"create the file, or name another in {name}")
        if name.endswith("token_file"):
            folder = shlex.quote(str(path.parent))
            token = "head -c 24 /dev/urandom | base64"
            fix = run(f"mkdir -p {folder} && (umask 077; {token} > {quoted})")
        yield failure("access", f"{name} is {path}, which does not exist", fix)
    elif not os.access(path, os.R_OK, effective_ids=True):
        fix = run_as_root(f"chown {os.geteuid()} {quoted}")
        yield failure("access", f"{name} is {path}, which this user cannot read", fix)


def _contents(context: CheckContext) -> Iterator[Finding]:
    ingest = context.config.ingest
    try:
        Auth.load(ingest)
    except Malformed as error:
        yield failure("access", str(error), do(f"replace the file, or name another: {error}"))
        return
    if ingest.tls_certificate_file is not None:
        assert ingest.tls_key_file is not None
        yield _validity(context, ingest.tls_certificate_file, ingest.tls_key_file)
    elif ingest.token_file is not None:
        yield ok("access", f"tokens of {ingest.token_file}, without TLS")


def _validity(context: CheckContext, certificate: str, key: str) -> Finding:
    try:
        ends = _valid_until(certificate, key)
    except ssl.SSLCertVerificationError as error:
        reasons = {EXPIRED: "has expired", NOT_YET_VALID: "is not valid yet"}
        why = reasons.get(error.verify_code, f"is invalid: {error.verify_message}")
        fix = do(f"put a new certificate at {certificate} and restart the node")
        return failure("certificate", f"{certificate} {why}", fix)
    days = (ends.timestamp() - context.clock.wall_ms() / 1000) / 86400
    text = f"{certificate} is valid until {ends:%Y-%m-%d}"
    if days < SOON_DAYS:
        fix = do(f"put a new certificate at {certificate} before {ends:%Y-%m-%d}")
        return note("certificate", f"{text}, in {days:.0f} days", fix)
    return ok("certificate", text)


def _valid_until(certificate: str, key: str) -> datetime:
    """Return until when a certificate is valid, for a client that trusts exactly this one.

    Python only parses a certificate's dates for the client of a handshake, so this does one in
    memory.
    """
    server_side = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server_side.load_cert_chain(certificate, key)
    client_side = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    client_side.check_hostname = False
    client_side.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    client_side.load_verify_locations(certificate)
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = client_side.wrap_bio(to_client, to_server)
    server = server_side.wrap_bio(to_server, to_client, server_side=True)
    unfinished = [client, server]
    while unfinished:
        for side in list(unfinished):
            try:
                side.do_handshake()
                unfinished.remove(side)
            except ssl.SSLWantReadError:
                continue
    peer = client.getpeercert()
    assert peer is not None
    return datetime.fromtimestamp(ssl.cert_time_to_seconds(str(peer["notAfter"])), UTC)
