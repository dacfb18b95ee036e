"""Ports: free, or in use by which process."""

from __future__ import annotations

import errno
import socket
from collections.abc import Iterator
from dataclasses import dataclass

from frazil.doctor.checks.processes import command_of, listeners, parent_of
from frazil.doctor.context import CheckContext, holder_of
from frazil.doctor.finding import Finding, Fix, failure, ok, set_to

STEP = 10_000
"""From a port in use to the first suggestion: 4317, 14317."""
PORT_MAX = 65535


@dataclass(frozen=True, slots=True, kw_only=True)
class Port:
    """A port of the settings."""

    host: str
    service: str
    number: int
    setting: str
    flag: str


def ports_of(context: CheckContext) -> list[Port]:
    config = context.config
    ingest, serve, kafka = config.ingest, config.serve, config.kafka
    rows = [
        (ingest.host, "OTLP/gRPC", ingest.grpc_port, "ingest.grpc_port", "--otlp-grpc-port"),
        (ingest.host, "OTLP/HTTP", ingest.http_port, "ingest.http_port", "--otlp-http-port"),
    ]
    if serve.enabled:
        rows.append((ingest.host, "API", serve.http_port, "serve.http_port", "--http-port"))
    if kafka.enabled:
        rows.append((config.kafka_host, "Kafka", kafka.port, "kafka.port", "--kafka-port"))
    if config.has_flight:
        flight = config.flight
        rows.append((config.flight_host, "Flight SQL", flight.port, "flight.port", "--flight-port"))
    if config.has_jaeger:
        jaeger = config.jaeger
        rows.append((config.jaeger_host, "Jaeger", jaeger.port, "jaeger.port", "--jaeger-port"))
    return [
        Port(host=host, service=service, number=number, setting=setting, flag=flag)
        for host, service, number, setting, flag in rows
    ]


def check_ports(context: CheckContext) -> Iterator[Finding]:
    """Check that a node can listen. A port of this folder's running node is fine."""
    host = context.config.ingest.host
    error = _listen_error(host, 0)
    if error is not None:
        text = f"cannot listen on {host}: {error.strerror}"
        yield failure("address", text, set_to("ingest.host", "127.0.0.1", "--host 127.0.0.1"))
        return
    holder = holder_of(context)
    node_pid = None if holder is None else holder.pid
    for port in ports_of(context):
        yield _check_port(port, port.host, node_pid)


def _check_port(port: Port, host: str, node_pid: int | None) -> Finding:
    check = f"port {port.number}"
    error = _listen_error(host, port.number)
    if error is None:
        return ok(
            check,
            f"free for {port.service}" if port.number else f"any free port, for {port.service}",
        )
    if error.errno != errno.EADDRINUSE:
        # Ports below 1024 need a privilege.
        text = f"{port.service} cannot listen: {error.strerror}"
        return failure(check, text, _another(port, host))
    pids = listeners(port.number)
    owners = {*pids, *map(parent_of, pids)}  # its reader process listens on some
    if node_pid is not None and node_pid in owners:
        return ok(check, f"{port.service}, in use by the running node (process {node_pid})")
    who = ", ".join(f"process {pid} ({command_of(pid)})" for pid in pids)
    text = f"in use by {who or 'a process of another user'}; {port.service} needs it"
    return failure(check, text, _another(port, host))


def _listen_error(host: str, port: int) -> OSError | None:
    """Return the error of listening on an address; None if it works."""
    try:
        addresses = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        for family, kind, protocol, _, address in addresses:
            with socket.socket(family, kind, protocol) as listener:
                listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                listener.bind(address)
                listener.listen(1)
    except OSError as error:
        return error
    return None


def _another(port: Port, host: str) -> Fix:
    for number in range(port.number % STEP + STEP, PORT_MAX + 1, STEP):
        if _listen_error(host, number) is None:
            return set_to(port.setting, number, f"{port.flag} {number}")
    return set_to(port.setting, 0, f"{port.flag} 0")
