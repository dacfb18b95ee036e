"""Telemetry outside of requests: pod starts and stops, periodic jobs, gauges."""

from __future__ import annotations

from collections.abc import Iterator

from frazil.demo.services import CART, CATALOGUE, Fleet, Pod
from frazil.demo.shop.exceptions import OUT_OF_MEMORY
from frazil.demo.telemetry.instruments import CARTS_OPEN, CPU, MEMORY, Instrument, Measured
from frazil.demo.telemetry.points import Measurement
from frazil.demo.telemetry.request_trace import NS_PER_S, EmittedRow, Severity, log_record
from frazil.model import NS_PER_MS, MiB, Rand

CPU_PER_REQUEST_S = 0.004
EXPIRED_SHARE = 0.3
"""Share of open carts that expire each minute."""
NO_SPAN = b""


def started(pod: Pod) -> list[EmittedRow]:
    """Return the logs of a pod start."""
    version = ".".join(map(str, pod.version))
    lines: list[tuple[int, Severity, str | dict[str, str | int]]] = [
        (0, "INFO", f"starting {pod.service.name} {version}"),
        (40, "DEBUG", {"event": "configuration", "source": "/etc/shop/config.yaml", "keys": 37}),
        (350, "INFO", f"listening on 0.0.0.0:{pod.service.port}"),
    ]
    return [
        EmittedRow(pod, log_record(pod.started_ns + ms * NS_PER_MS, severity, body, {}))
        for ms, severity, body in lines
    ]


def stopped(pod: Pod, at_ns: int) -> list[EmittedRow]:
    return [EmittedRow(pod, log_record(at_ns, "INFO", "SIGTERM: draining requests", {}))]


def crashed(pod: Pod, at_ns: int) -> list[EmittedRow]:
    attributes = {"exception.type": "MemoryError", "exception.stacktrace": OUT_OF_MEMORY}
    return [
        EmittedRow(pod, log_record(at_ns, "FATAL", f"out of memory\n{OUT_OF_MEMORY}", attributes))
    ]


def each_minute(
    fleet: Fleet, rand: Rand, at_ns: int, carts_open: int
) -> tuple[list[EmittedRow], int]:
    """Run periodic jobs. Returns their logs and the number of expired carts."""
    expired = int(carts_open * EXPIRED_SHARE)
    attributes: dict[str, str | int] = {"job": "expire-carts", "expired": expired}
    reindexed: dict[str, str | int] = {
        "event": "reindexed",
        "job": "search-index",
        "products": 400,
        "took_ms": rand.randrange(800, 2400),
    }
    free = rand.randrange(8, 30)
    rows = [
        EmittedRow(
            fleet.of(CART)[0], log_record(at_ns, "INFO", f"{expired} carts expired", attributes)
        ),
        EmittedRow(fleet.of(CATALOGUE)[0], log_record(at_ns + NS_PER_S, "INFO", reindexed, {})),
        EmittedRow(
            fleet.of(CATALOGUE)[-1],
            log_record(at_ns, "WARN", f"disk of the search index: {free} % left", {"free": free}),
        ),
    ]
    return rows, expired


def gauges(fleet: Fleet, rand: Rand, at_ns: int, seconds: float) -> Iterator[Measured]:
    """Yield CPU and memory of all pods, by the requests of the last seconds."""
    for pod in fleet.pods():
        busy = pod.served_count * CPU_PER_REQUEST_S * pod.slowness / seconds
        cpu = min(0.99, 0.02 + busy + rand.random() * 0.03)
        age_s = (at_ns - pod.started_ns) / NS_PER_S
        memory = pod.service.memory_mb * (0.6 + 0.4 * min(1.0, age_s / 600) + rand.random() * 0.05)
        yield measured(pod, CPU, at_ns, cpu)
        yield measured(pod, MEMORY, at_ns, float(int(memory * MiB)))
        pod.served_count = 0


def carts_given_up(fleet: Fleet, at_ns: int, count: int) -> Measured:
    return measured(fleet.of(CART)[0], CARTS_OPEN, at_ns, -count)


def measured(pod: Pod, metric: Instrument, at_ns: int, value: float) -> Measured:
    """Return a measurement outside of a span."""
    return Measured(pod, metric, (), Measurement(value, at_ns, NO_SPAN, NO_SPAN))
