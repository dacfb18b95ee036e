"""The writer process of a node: log, OTLP and Kafka ports, and the reader process beside it.

    API port ─> reader started ─> log ─> OTLP, Kafka ─> reader opens lake, hot tier, API ─> ready
    stop signal ─> OTLP and Kafka drained ─> reader ─> log

If the log's writer or its maintenance dies, the node ends, because durability depends on them. If
the reader dies, ingest continues: the reader is restarted, and `/readyz` has the cause.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import signal
import socket
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any

from frazil import tracing
from frazil.config import Config, reserve_bytes
from frazil.disk import RealDisk
from frazil.errors import FrazilError
from frazil.httpd import Auth, bind
from frazil.ingest import (
    CompiledRules,
    OtlpPorts,
    Redactor,
    compile_rules,
    load_hash_key,
    read_key_file,
)
from frazil.kafka import KafkaPort, consumer_groups
from frazil.log import Log
from frazil.model import NS_PER_MS, Clock, Rand
from frazil.node.api_listener import ApiListener, api_address
from frazil.node.reader_process import ReaderProcess
from frazil.node.writer_status import addresses_of, writer_checks, writer_rates, writer_status
from frazil.shutdown import Shutdown
from frazil.status import Check, ConsumerGroups, GroupsQuery, Uptime

logger = logging.getLogger(__name__)

Facts = Mapping[str, Any]
OnRoom = Callable[[str, Facts], None]
"""Called when a component is ready, with its name and facts, in any thread. Spark follows later."""

MAINTAIN_INTERVAL_S = 1.0
RATES_INTERVAL_S = 1.0
"""Interval between readings of the counters, for rates."""
CLOSE_LOG_S = 1.0
"""Kept of a stop for closing the log."""
TRACES_S = 0.5
"""Share of a stop: sending the node's own spans."""
DRAIN_S = 5.0
"""Share of a stop: running OTLP and Kafka requests."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeAddresses:
    """Ports of a running node."""

    grpc_port: int
    http_port: int
    api_port: int | None
    """None if `serve.enabled` is false."""
    kafka_port: int | None
    """None if `kafka.enabled` is false."""
    flight_port: int | None
    """None if `flight.enabled` is false, or there is no SQL."""
    jaeger_port: int | None
    """None if `jaeger.enabled` is false, or there is no SQL."""


def log_room(name: str, facts: Facts) -> None:
    """Log that a component is ready; the default of `on_room`."""
    logger.info("component is ready", extra={"component": name, **facts})


async def run(
    config: Config,
    *,
    clock: Clock,
    rand: Rand,
    ready: Callable[[NodeAddresses], None],
    on_room: OnRoom = log_room,
) -> None:
    """Run a node until SIGTERM or SIGINT. Calls `ready` once it accepts requests.

    A stop takes at most ten seconds; after that the process exits, which loses no acknowledged
    data.
    """
    stop_event = _stop_event()
    # First, so that a wrong setting leaves no files behind.
    auth = Auth.load(config.ingest)
    rules = compile_rules(config.redact)
    if config.ingest.redact_key_file is not None:
        read_key_file(config.ingest.redact_key_file)
    stop = Shutdown(clock, reserve_s=CLOSE_LOG_S)
    async with AsyncExitStack() as opened:
        opened.callback(stop.done)
        node = NodeStartup(config, clock, rand, on_room, opened, stop)
        addresses = await node.open_all(auth, rules)
        workers = [
            asyncio.create_task(_maintain(node.log)),
            asyncio.create_task(_tend(node)),
        ]
        opened.push_async_callback(_cancel, workers)
        gc.freeze()  # objects of the start-up live on; scanning them took 8 % of the time
        node.uptime.state = "running"
        ready(addresses)
        stopping = asyncio.create_task(stop_event.wait())
        await asyncio.wait({stopping, *workers}, return_when=asyncio.FIRST_COMPLETED)
        stopping.cancel()
        node.uptime.state = "stopping"
        logger.info("stopping", extra={"requests_in_flight": node.otlp.admission().request_count})
        stop.begin()
        await asyncio.to_thread(tracing.flush, TRACES_S)  # the node may export to itself
    logger.info("stopped", extra=stop.facts())


class NodeStartup:
    """Opens the components in order, reports each, and registers them for closing in reverse."""

    log: Log
    otlp: OtlpPorts
    kafka: KafkaPort | None = None

    def __init__(
        self,
        config: Config,
        clock: Clock,
        rand: Rand,
        on_room: OnRoom,
        opened: AsyncExitStack,
        stop: Shutdown,
    ) -> None:
        self.uptime = Uptime(clock, writer_rates(clock))
        self.reader: ReaderProcess | None = None
        self._config = config
        self._clock = clock
        self._rand = rand
        self._on_room = on_room
        self._opened = opened
        self._stop = stop

    async def open_all(self, auth: Auth, rules: CompiledRules) -> NodeAddresses:
        """Open everything. Long work runs in threads, so that a second signal is handled."""
        config = self._config
        listener = await self._listen()
        api_port = None if listener is None else int(listener.getsockname()[1])
        if config.serve.enabled or config.hot.enabled or config.lake.enabled:
            self.reader = ReaderProcess(
                config, clock=self._clock, api_port=api_port, on_room=self._on_room
            )
            self._opened.callback(self.reader.abandon)
        self.log = await self._open_log()
        self.otlp = await self._open_otlp(auth, rules)
        if config.kafka.enabled:
            self.kafka = await self._open_kafka(auth)
        if self.reader is not None:
            self._opened.push_async_callback(self._stop_reader, self.reader)
            self._opened.push_async_callback(self._close_ports)
            self.reader.begin(self.log, addresses_of(self.otlp), self._status, self._groups)
            if listener is not None:
                api = ApiListener(
                    listener,
                    auth,
                    hand_over=self.reader.hand_over,
                    has_reader=lambda: self.reader is not None and self.reader.is_running,
                    checks=self.checks,
                )
                self._opened.push_async_callback(api.close)
            await self._await_reader(self.reader)
        else:
            self._opened.push_async_callback(self._close_ports)
        own_ports = {} if self.reader is None else self.reader.own_ports
        return NodeAddresses(
            grpc_port=self.otlp.grpc_port,
            http_port=self.otlp.http_port,
            api_port=api_port,
            kafka_port=None if self.kafka is None else self.kafka.port,
            flight_port=own_ports.get("flight"),
            jaeger_port=own_ports.get("jaeger"),
        )

    async def _listen(self) -> socket.socket | None:
        """Open the API port, first: that it is taken is known before anything has started."""
        if not self._config.serve.enabled:
            return None
        listener = await bind(api_address(self._config.serve, self._config.ingest))
        self._opened.callback(listener.close)
        return listener

    async def _open_log(self) -> Log:
        begin_ns = self._clock.monotonic_ns()
        config = self._config

        def open_log() -> Log:
            disk = RealDisk(config.data)
            return Log.open(
                disk,
                config.log,
                clock=self._clock,
                rand=self._rand,
                holder="frazil up",
                reserve_bytes=reserve_bytes(config),
            )

        log = await asyncio.to_thread(open_log)
        self._opened.callback(log.close)
        self._report("log", _log_facts(log), begin_ns)
        return log

    async def _open_otlp(self, auth: Auth, rules: CompiledRules) -> OtlpPorts:
        begin_ns = self._clock.monotonic_ns()
        ingest = self._config.ingest
        redactor = None
        if rules:
            disk = RealDisk(self._config.data)
            key = await asyncio.to_thread(load_hash_key, disk, ingest.redact_key_file, self._rand)
            redactor = Redactor(rules, key)
        otlp = await OtlpPorts.open(
            self.log, ingest, auth, clock=self._clock, rand=self._rand, redactor=redactor
        )
        ports = {"grpc_port": otlp.grpc_port, "http_port": otlp.http_port}
        self._report("ingest", ports, begin_ns)
        return otlp

    async def _open_kafka(self, auth: Auth) -> KafkaPort:
        begin_ns = self._clock.monotonic_ns()
        try:
            kafka = await KafkaPort.open(
                self.log,
                RealDisk(self._config.data),
                self._config.kafka,
                self._config.kafka_host,
                auth,
                clock=self._clock,
                rand=self._rand,
                otlp=self.otlp.intake,
            )
        except FrazilError:
            await self.otlp.close(0)
            raise
        self._report("kafka", {"port": kafka.port}, begin_ns)
        return kafka

    async def _await_reader(self, reader: ReaderProcess) -> None:
        """Wait until the reader is ready. Raises why it cannot start."""
        await asyncio.to_thread(reader.first_done.wait)
        if reader.start_error is not None:
            raise reader.start_error

    def _report(self, name: str, facts: Facts, begin_ns: int) -> None:
        took_ms = (self._clock.monotonic_ns() - begin_ns) // NS_PER_MS
        self._on_room(name, {**facts, "took_ms": took_ms})

    def _status(self) -> Any:
        return writer_status(self.log, self.otlp, self.kafka, self.uptime)

    def _groups(self, query: GroupsQuery) -> ConsumerGroups:
        if self.kafka is None:
            return ConsumerGroups(is_enabled=False, group_count=0, groups=[])
        return consumer_groups(self.kafka.groups, query)

    def checks(self) -> list[Check]:
        """The state of every component of the node."""
        own = writer_checks(self.log, self.otlp, self.uptime)
        return own if self.reader is None else [*own, *self.reader.checks()]

    async def _close_ports(self) -> None:
        grace_s = self._stop.left_s(DRAIN_S)
        closing = [self.otlp.close(grace_s)]
        if self.kafka is not None:
            closing.append(self.kafka.close(grace_s))
        await asyncio.gather(*closing)
        drained = self.otlp.admission()
        self._stop.note(requests_answered=drained.answered_count, requests_cut=drained.cut_count)

    async def _stop_reader(self, reader: ReaderProcess) -> None:
        await asyncio.to_thread(reader.stop, self._stop.left_s())
        self._stop.note(**reader.stop_facts)


def _log_facts(log: Log) -> Facts:
    partitions = [partition for topic in log.topics() for partition in topic.partitions]
    return {
        "topics": len(log.topics()),
        "offsets": sum(p.view.durable_watermark - p.view.start_offset for p in partitions),
        "bytes": log.budget.used_bytes,
        "bytes_max": log.budget.hard_bytes_max,
    }


async def _maintain(log: Log) -> None:
    while True:
        await asyncio.to_thread(log.maintain)
        await asyncio.sleep(MAINTAIN_INTERVAL_S)


async def _tend(node: NodeStartup) -> None:
    """Read the counters and watch the reader, once a second."""
    while True:
        node.uptime.rates.step()
        if node.reader is not None:
            node.reader.watch()
        await asyncio.sleep(RATES_INTERVAL_S)


async def _cancel(workers: list[asyncio.Task[None]]) -> None:
    """Cancel the workers. Raises the error of a worker that died."""
    for task in workers:
        task.cancel()
    for task in workers:
        try:
            await task
        except asyncio.CancelledError:
            continue


def _stop_event() -> asyncio.Event:
    """Return an event set by the first SIGTERM or SIGINT. The second ends the process."""
    event = asyncio.Event()
    loop = asyncio.get_running_loop()
    numbers = (signal.SIGTERM, signal.SIGINT)

    def stop() -> None:
        event.set()
        for number in numbers:
            loop.remove_signal_handler(number)
            signal.signal(number, signal.SIG_DFL)

    for number in numbers:
        loop.add_signal_handler(number, stop)
    return event
