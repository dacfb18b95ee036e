"""SimNode: log and port on a simulated disk. It is killed, loses power, and starts again."""

from __future__ import annotations

import asyncio
import contextvars
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any, cast
from unittest import mock

from frazil.httpd import Auth
from frazil.kafka import KafkaPort, lone_client
from frazil.kafka import port as port_module
from frazil.kafka.connection import KafkaConnection
from frazil.kafka.transactions.coordinator import TransactionCoordinator
from frazil.log import Log
from frazil.log import log as log_module
from frazil.log.compaction import compact
from frazil.model import Rand
from frazil.settings import KafkaPortConfig, LogConfig
from tests.sim.clock import SimClock
from tests.sim.disk import Faults, PowerCut, SimDisk
from tests.torture.checker import Verdict
from tests.torture.kafka.loop import LIFE, SimLoop, SimThreads, listening
from tests.torture.kafka.network import Lost, Weather, Wire

APIS = {
    0: "produce",
    8: "offset_commit",
    11: "rebalance",
    14: "rebalance",
    20: "topic_delete",
    22: "init_producer_id",
    24: "add_partitions",
    26: "end_txn",
    28: "txn_offset_commit",
}
"""Requests at whose storage calls the power is cut, by API key."""
STORAGE_CALLS = (3, 8, 25, 60)
"""How many storage calls after such a request the power is cut at most."""


class SimNode:
    """Owned by the loop. `work` is called by it whenever nothing else can run."""

    def __init__(
        self,
        rand: Rand,
        disk: SimDisk,
        log_config: LogConfig,
        kafka_config: KafkaPortConfig,
        weather: Weather,
        verdict: Verdict,
        fired: Counter[str],
    ) -> None:
        self.rand = rand
        self.disk = disk
        self.clock = SimClock()
        self.verdict = verdict
        self.fired = fired
        self.weather = weather
        self._log_config = log_config
        self._kafka_config = kafka_config
        self.loop = SimLoop(self.clock, self._work)
        self.loop.set_exception_handler(self._failed)
        self.outside = contextvars.copy_context()
        self.life = 0
        self.is_up = False
        self.is_observed = False
        """Whether only observers may connect."""
        self.down = asyncio.Event()
        self.log: Log | None = None
        self._port: KafkaPort | None = None
        self._transactions: TransactionCoordinator | None = None
        self._context = self.outside
        self._wires: list[Wire] = []
        self.slowness = rand.choice((0.0, 0.0, 0.2, 0.6))
        """How often time passes although the disk has work."""
        self.target = ""
        """The request, or task, at whose storage calls this life ends."""
        self.end_as = "cut"
        self._has_failed = False

    # Starting and ending.

    @contextmanager
    def simulated(self) -> Iterator[None]:
        """Replace threads and sockets of the port."""
        SimThreads.rand = self.rand

        def armed(*args: Any) -> Any:
            self.arm("compaction")
            return compact(*args)

        def coordinator(*args: Any, **options: Any) -> TransactionCoordinator:
            self._transactions = TransactionCoordinator(*args, **options)
            return self._transactions

        with ExitStack() as patched:
            for name, value in (
                ("WorkerThreads", SimThreads),
                ("bind", listening),
                ("TransactionCoordinator", coordinator),
            ):
                patched.enter_context(mock.patch.object(port_module, name, value))
            patched.enter_context(
                mock.patch.object(lone_client, "REQUESTS_MIN", self.rand.choice((0, 1, 8)))
            )
            patched.enter_context(mock.patch.object(log_module, "compact", armed))
            yield

    async def start(self) -> bool:
        """Open log and port. Returns False if the power was cut meanwhile."""
        self.life += 1
        self.down.clear()
        self._has_failed = False
        self._context = self.outside.copy()
        self._context.run(LIFE.set, self.life)
        opening = self.loop.create_task(self._open(), context=self._context)
        await asyncio.wait(
            [opening, ending := self.loop.create_task(self.down.wait())],
            return_when=asyncio.FIRST_COMPLETED,
        )
        ending.cancel()
        if self.down.is_set() or self.is_dead:
            return False
        opening.result()  # another error is a finding
        self.is_up = True
        return True

    async def _open(self) -> None:
        self.log = self.open_log()
        self._port = await KafkaPort.open(
            self.log,
            self.disk,
            self._kafka_config,
            "127.0.0.1",
            Auth(),
            clock=self.clock,
            rand=Rand(self.rand.getrandbits(64)),
        )

    def open_log(self) -> Log:
        return Log.open(
            self.disk,
            self._log_config,
            clock=self.clock,
            rand=Rand(self.rand.getrandbits(64)),
            fatal=partial(self._fatal, self.life),
            threaded=False,
        )

    def _fatal(self, life: int, error: BaseException) -> None:
        """What a dead node left behind may fail once more, when it is collected."""
        self._has_failed |= life == self.life

    @property
    def is_dead(self) -> bool:
        """Whether the machine or the process has stopped, and is to be buried."""
        return self.disk.is_dead or self._has_failed

    def _failed(self, _: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception")
        if isinstance(error, Exception) and not isinstance(error, Lost) and not self.is_dead:
            self.verdict.add("untrue", f"{context.get('message')}: {error!r}")

    def _work(self, is_busy: bool) -> bool:
        """Bury a dead node, or let its disk do something."""
        if self.is_dead:
            if self.down.is_set():
                return False
            self.bury(self.end_as)
            return True
        log = self.log
        if log is None or self.down.is_set() or not log.writer.queue_count:
            return False
        if self.rand.random() < (0.9 if is_busy else self.slowness):
            if is_busy:
                return False
            self.clock.sleep(0.01 * self.rand.random())
            return False
        try:
            log.writer.step()
        except PowerCut:
            self.bury(self.end_as)
        return True

    def bury(self, how: str) -> None:
        """End this life: the process is killed, or the power is cut. Call it while nothing runs."""
        self.fired[f"end_{how}"] += 1
        if self.target:
            self.fired[f"{how}_at_{self.target}"] += self.disk.is_dead
        if self._transactions is not None and any(
            each.current.state.is_prepared for each in self._transactions.ids
        ):
            self.fired[f"{how}_at_markers"] += 1
        self.is_up = False
        self.loop.accept = None
        self.loop.end_life(self.life)
        for wire in self._wires:
            wire.end_life()
        self._wires.clear()
        self._transactions = None
        self.log = self._port = None
        # A failed sync means that the page cache is a lie: only a real restart is sure to show it.
        self.disk = self.disk.crash(self.rand) if how == "cut" else self.disk.process_kill()
        self.disk.faults = Faults()
        self.down.set()

    def kill(self, how: str) -> None:
        """Ask for the end of this life, as soon as nothing runs."""
        self.end_as = how
        self.disk.stop()

    async def close(self) -> None:
        """End this life in an orderly way."""
        port, log = self._port, self.log
        assert port is not None and log is not None
        self.is_up = False
        self.loop.accept = None

        async def closing() -> None:
            await port.close(1.0)
            log.close()

        task = self.loop.create_task(closing(), context=self._context.copy())
        ending = self.loop.create_task(self.down.wait())
        await asyncio.wait([task, ending], return_when=asyncio.FIRST_COMPLETED)
        ending.cancel()
        if not self.down.is_set() and not self.is_dead:
            task.result()
            self.target = ""
            self.kill("kill")  # what it left behind is what the next one finds
            self.fired["end_close"] += 1

    # What the clients and the operator use.

    def arm(self, name: str) -> None:
        """Cut the power at one of the next storage calls, if this is what the life ends with."""
        if name and name == self.target and self.disk.faults.crash_at is None:
            calls = self.rand.randint(1, self.rand.choice(STORAGE_CALLS))
            self.disk.faults.crash_at = self.disk.calls + calls

    async def connect(self, *, is_observer: bool = False) -> Wire:
        """Return a new connection. Raises `Lost` while nobody listens, or only to observers."""
        await asyncio.sleep(0.0001)
        accept = self.loop.accept
        if accept is None or (self.is_observed and not is_observer):
            raise Lost
        protocol = cast(KafkaConnection, self._context.copy().run(accept))
        wire = Wire(self._watched(protocol), self._context, self.weather, self.outside)
        self._wires = [each for each in self._wires if not each.is_lost] + [wire]
        return wire

    def _watched(self, protocol: KafkaConnection) -> KafkaConnection:
        """Note requests that the port fails on, and those at which the power is to be cut."""
        close, handle = protocol.close, protocol._handle

        def closing(reason: str, error: Any = None) -> None:
            if reason == "internal" and not self.is_dead:
                self.verdict.add("untrue", f"the port failed on a request: {error!r}")
            close(reason, error)

        def handling(frame: Any) -> Any:
            self.arm(APIS.get(int.from_bytes(bytes(frame[:2]), "big"), ""))
            return handle(frame)

        protocol.close = closing  # type: ignore[method-assign]
        protocol._handle = handling  # type: ignore[method-assign]
        return protocol

    def maintain(self) -> None:
        """Expire, compact and roll, as the node does once a second. Not while all is read: what is
        read first and last would differ."""
        if self.is_up and self.log is not None and not self.is_dead and not self.is_observed:
            self._context.copy().run(self.log.maintain)
