"""The running node, and the OTLP variables of this shell."""

from __future__ import annotations

import re
import socket
import ssl
import urllib.error
import urllib.request
from collections.abc import Iterator
from urllib.parse import urlsplit

from frazil.doctor.context import CheckContext, FolderHolder, holder_of
from frazil.doctor.finding import Finding, do, failure, note, ok, run, warning

TIMEOUT_S = 2.0
"""A healthy node responds at once."""
TEXT_BYTES_MAX = 16_384
NOT_READY = 503
ROOM = re.compile(
    r"^\[[+-]\](?P<name>\w+) (?P<state>ok|degraded|failed)(: (?P<why>.*))?$", re.MULTILINE
)
"""A line of `/readyz?verbose`."""
NODE = "frazil up"
WILDCARDS = {"0.0.0.0": "127.0.0.1", "::": "::1"}
"""Wildcard address -> the loopback address that reaches it."""
EXPORTER = "OTEL_EXPORTER_OTLP_"
SIGNALS = ("", "TRACES_", "METRICS_", "LOGS_")


def check_node(context: CheckContext) -> Iterator[Finding]:
    """Check which process has the folder open, and whether a node is ready."""
    holder = holder_of(context)
    if holder is None:
        yield ok("node", "not running")
    elif holder.name != NODE:
        fix = do(f"wait until {holder} exits, or stop it")
        yield note("node", f"{holder} has the data folder open; a node cannot start", fix)
    elif not context.config.serve.enabled:
        yield ok("node", f"{holder} is running; serve.enabled is false, so it cannot be queried")
    else:
        yield from _check_health(context, holder)


def _check_health(context: CheckContext, holder: FolderHolder) -> Iterator[Finding]:
    """Report the state of each room of the node."""
    url = f"{_base_url(context)}/readyz?verbose"
    try:
        text = _fetch(url)
    except OSError as error:
        reason = getattr(error, "reason", error)
        fix = run(f"kill {holder.pid}")
        yield failure("node", f"{holder} is running, but {url} does not respond: {reason}", fix)
        return
    problems = [match for match in ROOM.finditer(text) if match["state"] != "ok"]
    for room in problems:
        why, _, next_step = (room["why"] or "").rpartition("; ")
        fix = do(next_step or f"see {url}, and restart the node")
        level = failure if room["state"] == "failed" else warning
        message = f"{holder}: {room['name']} {room['state']}: {why or next_step}"
        yield level("node", message, fix)
    if not problems:
        yield ok("node", f"{holder} is running: {' '.join(text.split())}")


def _fetch(url: str) -> str:
    """Return the text, ready or not. The certificate is not verified: it is our own node."""
    unchecked = ssl.create_default_context()
    unchecked.check_hostname, unchecked.verify_mode = False, ssl.CERT_NONE
    opener = urllib.request.build_opener(
        urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=unchecked)
    )
    try:
        response = opener.open(url, timeout=TIMEOUT_S)
    except urllib.error.HTTPError as error:
        if error.status != NOT_READY:
            raise
        response = error
    with response:
        text: bytes = response.read(TEXT_BYTES_MAX)
    return text.decode("utf-8", "replace")


def _base_url(context: CheckContext) -> str:
    ingest = context.config.ingest
    host = WILDCARDS.get(ingest.host, ingest.host)
    scheme = "https" if ingest.tls_certificate_file else "http"
    address = f"[{host}]" if ":" in host else host
    return f"{scheme}://{address}:{context.config.serve.http_port}"


def check_exporters(context: CheckContext) -> Iterator[Finding]:
    """Check variables that make applications of this shell send elsewhere, or wrongly."""
    ingest = context.config.ingest
    protocols = {ingest.grpc_port: "grpc", ingest.http_port: "http/protobuf"}
    scheme = "https" if ingest.tls_certificate_file else "http"
    ours = f"{scheme}://{WILDCARDS.get(ingest.host, ingest.host)}"
    is_ok = True
    for signal in SIGNALS:
        name = f"{EXPORTER}{signal}ENDPOINT"
        endpoint = context.environment.get(name)
        if endpoint is None:
            continue
        target = urlsplit(endpoint if "://" in endpoint else f"//{endpoint}")
        if target.port not in protocols or not _is_same(target.hostname, ingest.host):
            path = f"/v1/{signal.lower().rstrip('_')}" if signal else ""
            fix = run(f"export {name}={ours}:{ingest.http_port}{path}")
            yield note("exporters", f"{name} is {endpoint}, which is not this node", fix)
            is_ok = False
            continue
        protocol = context.environment.get(
            f"{EXPORTER}{signal}PROTOCOL"
        ) or context.environment.get(f"{EXPORTER}PROTOCOL")
        expected = protocols[target.port]
        if protocol is not None and protocol.partition("/")[0] != expected.partition("/")[0]:
            message = f"{name} is the port of {expected}, but the protocol is {protocol}"
            yield warning(
                "exporters", message, run(f"export {EXPORTER}{signal}PROTOCOL={expected}")
            )
            is_ok = False
    if is_ok:
        yield ok("exporters", "no OTEL_ variable of this shell points elsewhere")


def _is_same(host: str | None, ours: str) -> bool:
    """Return whether two names have a common address, or ours is a wildcard."""
    if host is None or host == ours:
        return host is not None
    try:
        addresses = {entry[4][0] for entry in socket.getaddrinfo(host, None)}
        own_addresses = {entry[4][0] for entry in socket.getaddrinfo(ours, None)}
    except OSError:
        return False
    return bool(addresses & own_addresses) or (ours in WILDCARDS and WILDCARDS[ours] in addresses)
