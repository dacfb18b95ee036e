"""Who may send: certificates, keys and tokens, before a node refuses to start with them."""

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
    run,
    run_as_root,
    set_to,
    warning,
    well,
)
from frazil.errors import Malformed
from frazil.httpd import Auth
from frazil.ingest import is_loopback

SOON_DAYS = 14
"""Time to have a new certificate made."""
EXPIRED = 10
NOT_YET_VALID = 9
"""OpenSSL's numbers for these."""
OTHERS = 0o007
SECRETS = ("tls_key_file", "token_file")


def check_access(case: CheckContext) -> Iterator[Finding]:
    """Files that can be read, fit each other and are valid; secrets that others cannot read."""
    ingest = case.config.ingest
    named = {
        f"ingest.{name}": Path(path)
        for name in ("tls_certificate_file", "tls_key_file", "tls_client_ca_file", "token_file")
        if (path := getattr(ingest, name)) is not None
    }
    if case.config.serve.token_file is not None:
        named["serve.token_file"] = Path(case.config.serve.token_file)
    unreadable = [each for name, path in named.items() for each in _unreadable(name, path)]
    yield from unreadable
    if not unreadable:
        yield from _contents(case)
    for name, path in named.items():
        is_there = os.access(path, os.F_OK, effective_ids=True)
        if name.endswith(SECRETS) and is_there and path.stat().st_mode & OTHERS:
            found = f"{name} {path} is open to every user of this machine"
            yield warning("secrets", found, run(f"chmod o-rwx {shlex.quote(str(path))}"))
    if ingest.insecure and not is_loopback(ingest.host):
        found = f"other machines reach {ingest.host}, and anybody may send in clear text"
        yield warning("access", found, set_to("ingest.host", "127.0.0.1", "--host 127.0.0.1"))
    elif not named:
        yield well("access", f"only this machine reaches {ingest.host}")


def _unreadable(name: str, path: Path) -> Iterator[Finding]:
    quoted = shlex.quote(str(path))
    if not os.access(path, os.F_OK, effective_ids=True):
        fix = do(f"put the file there, or name another in {name}")
        if name.endswith("token_file"):
            folder = shlex.quote(str(path.parent))
            token = "head -c 24 /dev/urandom | base64"
            fix = run(f"mkdir -p {folder} && (umask 077; {token} > {quoted})")
        yield failure("access", f"{name} is {path}, which is not there", fix)
    elif not os.access(path, os.R_OK, effective_ids=True):
        fix = run_as_root(f"chown {os.geteuid()} {quoted}")
        yield failure("access", f"{name} is {path}, which this user cannot read", fix)


def _contents(case: CheckContext) -> Iterator[Finding]:
    ingest = case.config.ingest
    try:
        Auth.load(ingest)
    except Malformed as error:
        yield failure("access", str(error), do(f"replace the file, or name another: {error}"))
        return
    if ingest.tls_certificate_file is not None:
        assert ingest.tls_key_file is not None
        yield _validity(case, ingest.tls_certificate_file, ingest.tls_key_file)
    elif ingest.token_file is not None:
        yield well("access", f"tokens of {ingest.token_file}, in clear text")


def _validity(case: CheckContext, certificate: str, key: str) -> Finding:
    try:
        ends = _shown(certificate, key)
    except ssl.SSLCertVerificationError as error:
        words = {EXPIRED: "has expired", NOT_YET_VALID: "is not valid yet"}
        why = words.get(error.verify_code, f"is refused: {error.verify_message}")
        fix = do(f"have a new certificate made, put it at {certificate}, and start the node again")
        return failure("certificate", f"{certificate} {why}", fix)
    days = (ends.timestamp() - case.clock.wall_ms() / 1000) / 86400
    found = f"{certificate} is valid until {ends:%Y-%m-%d}"
    if days < SOON_DAYS:
        fix = do(f"have a new certificate made before {ends:%Y-%m-%d}, and put it at {certificate}")
        return note("certificate", f"{found}, which is in {days:.0f} days", fix)
    return well("certificate", found)


def _shown(certificate: str, key: str) -> datetime:
    """Until when a certificate is valid, as a client sees it that trusts exactly this one.

    Python's library reads a certificate's dates for the client of a handshake only, so that there
    is one here, in memory.
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
    waiting = [client, server]
    while waiting:
        for side in list(waiting):
            try:
                side.do_handshake()
                waiting.remove(side)
            except ssl.SSLWantReadError:
                continue
    shown = client.getpeercert()
    assert shown is not None
    return datetime.fromtimestamp(ssl.cert_time_to_seconds(str(shown["notAfter"])), UTC)
