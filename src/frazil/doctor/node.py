"""A node that runs with these settings, and where this shell's applications send to."""

from __future__ import annotations

import socket
import ssl
import urllib.error
import urllib.request
from collections.abc import Iterator
from urllib.parse import urlsplit

from frazil.doctor.case import Case, Holder, holder_of
from frazil.doctor.finding import Finding, do, failure, note, run, warning, well

ANSWER_S = 2.0
"""It has the answer at hand."""
TEXT_BYTES_MAX = 4096
NODE = "frazil up"
ANY = {"0.0.0.0": "127.0.0.1", "::": "::1"}
"""Where a node that listens everywhere can be reached from here."""
EXPORTER = "OTEL_EXPORTER_OTLP_"
SIGNALS = ("", "TRACES_", "METRICS_", "LOGS_")


def check_node(case: Case) -> Iterator[Finding]:
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
        yield _asked(case, holder)


def _asked(case: Case, holder: Holder) -> Finding:
    url = f"{_base_url(case)}/readyz?verbose"
    unchecked = ssl.create_default_context()
    unchecked.check_hostname, unchecked.verify_mode = False, ssl.CERT_NONE  # it is ourselves
    opener = urllib.request.build_opener(
        urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=unchecked)
    )
    try:
        with opener.open(url, timeout=ANSWER_S) as answer:
            answer.read(TEXT_BYTES_MAX)
    except urllib.error.HTTPError as refusal:
        with refusal:
            said = refusal.read(TEXT_BYTES_MAX).decode("utf-8", "replace")
        found = f"{holder} runs, and is not ready: {' '.join(said.split())}"
        return failure("node", found, do(f"mend what it names; it is ready when {url} answers 200"))
    except OSError as error:
        reason = getattr(error, "reason", error)
        fix = run(f"kill {holder.pid}")
        return failure("node", f"{holder} runs, but {url} does not answer: {reason}", fix)
    return well("node", f"{holder} runs, and is ready")


def _base_url(case: Case) -> str:
    ingest = case.config.ingest
    host = ANY.get(ingest.host, ingest.host)
    scheme = "https" if ingest.tls_certificate_file else "http"
    address = f"[{host}]" if ":" in host else host
    return f"{scheme}://{address}:{case.config.serve.http_port}"


def check_exporters(case: Case) -> Iterator[Finding]:
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
