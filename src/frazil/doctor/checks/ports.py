"""The ports: free, or taken, by whom, and what to do about it."""

from __future__ import annotations

import errno
import socket
from collections.abc import Iterator
from dataclasses import dataclass

from frazil.doctor.checks.processes import command_of, listeners
from frazil.doctor.context import CheckContext, holder_of
from frazil.doctor.finding import Finding, Fix, failure, set_to, well

STEP = 10_000
"""From a taken port to the first one that is proposed instead: 4317, 14317."""
PORT_MAX = 65535


@dataclass(frozen=True, slots=True, kw_only=True)
class Port:
    """A port that the settings ask for."""

    what: str
    number: int
    setting: str
    flag: str


def ports_of(case: CheckContext) -> list[Port]:
    ingest, serve = case.config.ingest, case.config.serve
    grpc, http = ingest.grpc_port, ingest.http_port
    found = [
        Port(what="OTLP/gRPC", number=grpc, setting="ingest.grpc_port", flag="--otlp-grpc-port"),
        Port(what="OTLP/HTTP", number=http, setting="ingest.http_port", flag="--otlp-http-port"),
    ]
    if serve.enabled:
        number = serve.http_port
        found.append(Port(what="API", number=number, setting="serve.http_port", flag="--http-port"))
    return found


def check_ports(case: CheckContext) -> Iterator[Finding]:
    """Could a node listen? A port that the node of this folder has is as it should be."""
    host = case.config.ingest.host
    refused = _refusal(host, 0)
    if refused is not None:
        found = f"nothing can listen at {host}: {refused.strerror}"
        yield failure("address", found, set_to("ingest.host", "127.0.0.1", "--host 127.0.0.1"))
        return
    holder = holder_of(case)
    ours = None if holder is None else holder.pid
    for port in ports_of(case):
        yield _look(port, host, ours)


def _look(port: Port, host: str, ours: int | None) -> Finding:
    check = f"port {port.number}"
    refused = _refusal(host, port.number)
    if refused is None:
        return well(check, f"free for {port.what}" if port.number else f"any, for {port.what}")
    if refused.errno != errno.EADDRINUSE:
        # Ports below 1024 need a right that most users have not.
        found = f"{port.what} cannot listen there: {refused.strerror}"
        return failure(check, found, _another(port, host))
    pids = listeners(port.number)
    if ours is not None and ours in pids:
        return well(check, f"{port.what}, by the node that runs here (process {ours})")
    who = ", ".join(f"process {pid} ({command_of(pid)})" for pid in pids)
    found = f"taken by {who or 'a process of another user'}; {port.what} wants it"
    return failure(check, found, _another(port, host))


def _refusal(host: str, port: int) -> OSError | None:
    """What the kernel says to who wants to listen there; None is yes."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        for family, kind, protocol, _, address in found:
            with socket.socket(family, kind, protocol) as taken:
                taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                taken.bind(address)
                taken.listen(1)
    except OSError as error:
        return error
    return None


def _another(port: Port, host: str) -> Fix:
    for number in range(port.number % STEP + STEP, PORT_MAX + 1, STEP):
        if _refusal(host, number) is None:
            return set_to(port.setting, number, f"{port.flag} {number}")
    return set_to(port.setting, 0, f"{port.flag} 0")
