"""A node that runs with these settings, and where this shell's applications send to."""

from __future__ import annotations

import re
import socket
import ssl
import urllib.error
import urllib.request
from collections.abc import Iterator
from urllib.parse import urlsplit

from frazil.doctor.context import CheckContext, FolderHolder, holder_of
from frazil.doctor.finding import Finding, do, failure, note, run, warning, well

ANSWER_S = 2.0
"""It has the answer at hand."""
TEXT_BYTES_MAX = 16_384
NOT_READY = 503
ROOM = re.compile(
    r"^\[[+-]\](?P<name>\w+) (?P<state>ok|degraded|failed)(: (?P<why>.*))?$", re.MULTILINE
)
"""A line of the answer."""
NODE = "frazil up"
ANY = {"0.0.0.0": "127.0.0.1", "::": "::1"}
"""Where a node that listens everywhere can be reached from here."""
EXPORTER = "OTEL_EXPORTER_OTLP_"
SIGNALS = ("", "TRACES_", "METRICS_", "LOGS_")


def check_node(case: CheckContext) -> Iterator[Finding]:
    """Who has the folder; and does a node say that it is ready?"""
    holder = holder_of(case)
    if holder is None:
        yield well("node", "none is running in this folder")
    elif holder.name != NODE:
        fix = do(f"wait until {holder} has ended, or stop it")
        yield note("node", f"{holder} has the folder; a node cannot start meanwhile", fix)
    elif not case.config.serve.enabled:
        yield well("node", f"{holder} runs; serve.enabled is false, so it cannot be asked")
    else:
        yield from _asked(case, holder)


def _asked(case: CheckContext, holder: FolderHolder) -> Iterator[Finding]:
    """What it says of each of its rooms."""
    url = f"{_base_url(case)}/readyz?verbose"
    try:
        said = _answer(url)
    except OSError as error:
        reason = getattr(error, "reason", error)
        fix = run(f"kill {holder.pid}")
        yield failure("node", f"{holder} runs, but {url} does not answer: {reason}", fix)
        return
    troubles = [match for match in ROOM.finditer(said) if match["state"] != "ok"]
    for room in troubles:
        why, _, next_step = (room["why"] or "").rpartition("; ")
        fix = do(next_step or f"look at what {url} says, and start the node again")
        tell = failure if room["state"] == "failed" else warning
        found = f"{holder} says that {room['name']} {room['state']}: {why or next_step}"
        yield tell("node", found, fix)
    if not troubles:
        yield well("node", f"{holder} runs: {' '.join(said.split())}")


def _answer(url: str) -> str:
    """The text, whatever the status. The certificate may be for another name: it is ourselves."""
    unchecked = ssl.create_default_context()
    unchecked.check_hostname, unchecked.verify_mode = False, ssl.CERT_NONE
    opener = urllib.request.build_opener(
        urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=unchecked)
    )
    try:
        answer = opener.open(url, timeout=ANSWER_S)
    except urllib.error.HTTPError as refusal:
        if refusal.status != NOT_READY:
            raise
        answer = refusal
    with answer:
        text: bytes = answer.read(TEXT_BYTES_MAX)
    return text.decode("utf-8", "replace")


def _base_url(case: CheckContext) -> str:
    ingest = case.config.ingest
    host = ANY.get(ingest.host, ingest.host)
    scheme = "https" if ingest.tls_certificate_file else "http"
    address = f"[{host}]" if ":" in host else host
    return f"{scheme}://{address}:{case.config.serve.http_port}"


def check_exporters(case: CheckContext) -> Iterator[Finding]:
    """Variables by which applications from this shell would send elsewhere, or the wrong way."""
    ingest = case.config.ingest
    ways = {ingest.grpc_port: "grpc", ingest.http_port: "http/protobuf"}
    scheme = "https" if ingest.tls_certificate_file else "http"
    ours = f"{scheme}://{ANY.get(ingest.host, ingest.host)}"
    is_well = True
    for signal in SIGNALS:
        name = f"{EXPORTER}{signal}ENDPOINT"
        given = case.environment.get(name)
        if given is None:
            continue
        target = urlsplit(given if "://" in given else f"//{given}")
        if target.port not in ways or not _is_same(target.hostname, ingest.host):
            path = f"/v1/{signal.lower().rstrip('_')}" if signal else ""
            fix = run(f"export {name}={ours}:{ingest.http_port}{path}")
            yield note("exporters", f"{name} is {given}, which is not this node", fix)
            is_well = False
            continue
        protocol = case.environment.get(f"{EXPORTER}{signal}PROTOCOL") or case.environment.get(
            f"{EXPORTER}PROTOCOL"
        )
        way = ways[target.port]
        if protocol is not None and protocol.partition("/")[0] != way.partition("/")[0]:
            found = f"{name} is the port for {way}, but the protocol is {protocol}"
            yield warning("exporters", found, run(f"export {EXPORTER}{signal}PROTOCOL={way}"))
            is_well = False
    if is_well:
        yield well("exporters", "no OTEL_ variable of this shell points elsewhere")


def _is_same(host: str | None, ours: str) -> bool:
    """Do two names lead to the same address, or is ours every one?"""
    if host is None or host == ours:
        return host is not None
    try:
        there = {entry[4][0] for entry in socket.getaddrinfo(host, None)}
        here = {entry[4][0] for entry in socket.getaddrinfo(ours, None)}
    except OSError:
        return False
    return bool(there & here) or (ours in ANY and ANY[ours] in there)
