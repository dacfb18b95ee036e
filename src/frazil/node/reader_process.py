"""ReaderProcess: the reader, seen from the writer: started, watched, restarted.

    life      start ─> Hello ─> components open ─> ready ─> beats ... ends
    between   wait, longer after each early end, then the next life

Acknowledgements never wait for it. A reader that stops responding is killed.
"""

from __future__ import annotations

import logging
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from typing import Any, Literal

import msgspec

from frazil import errors
from frazil.config import Config
from frazil.errors import FrazilError, Unavailable
from frazil.log import CommitSignal, Log, serve_appends, serve_observer
from frazil.metrics import Counter
from frazil.model import NS_PER_MS, Clock, MiB
from frazil.processes import (
    Beat,
    Channel,
    GroupsReply,
    GroupsRequest,
    Hello,
    ReaderReady,
    ReaderStopped,
    RoomReady,
    StartFailed,
    StatusReply,
    StatusRequest,
    Stop,
    ToWriter,
)
from frazil.status import Check, ConsumerGroups, GroupsQuery, OtlpAddresses, WriterStatus

logger = logging.getLogger(__name__)

BACKOFF_S, BACKOFF_S_MAX = 0.1, 30.0
"""Pause before the next life: doubled after each life that ended early."""
READY_BACKOFF_S_MAX = 2.0
"""The longest pause after a life that was ready: it served, and so may the next one."""
WELL_S = 5.0
"""A life that was ready for longer was no early end: the next pause is short again."""
EXITS_S = 60.0
EXITS_MAX = 3
"""Exits within `EXITS_S` of the start, in a row, after which a reader stays up without a hot tier,
for diagnosis. A life that a signal ended does not count: the hot tier has not died."""
START_S_MAX = 300.0
"""From start to the first beat. The first start after an update compiles for a minute."""
SILENCE_S_MAX = 20.0
"""A reader that sends no beat for this long is killed."""
LATE_S = 3.0
"""After this long without a beat, readiness says so."""
OWN_PORTS = ("flight", "jaeger")
"""Components of the reader that listen themselves."""
KILL_WAIT_S = 0.5
"""How much longer than asked a stop may take before the reader is killed."""

ENVIRONMENT = {
    # By default each thread and Arrow's own allocator keep what was freed, which doubled the memory
    # of the reader under a steady load. One that gives everything back at once takes a page fault
    # for every page of the next batch: 1 us more per row.
    "ARROW_DEFAULT_MEMORY_POOL": "system",
    "MALLOC_ARENA_MAX": "2",
    "MALLOC_MMAP_THRESHOLD_": str(64 * MiB),
    "MALLOC_TRIM_THRESHOLD_": str(128 * MiB),
}
"""Of the reader and its children, unless it is set."""

STARTED = Counter("frazil.node.reader.starts", "Reader processes started.")
ENDED = Counter("frazil.node.reader.ends", "Unexpected exits of the reader process, by reason.")

EXIT = "exit code"
"""Begin of the reason of a life that no signal has ended."""
BACKOFFS_MAX = 20
"""Doublings that are counted: the longest pause is far below."""

State = Literal["starting", "running", "restarting", "stopped"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReaderState:
    """What is known of the reader. Replaced as a whole."""

    state: State = "starting"
    pid: int | None = None
    why: str | None = None
    """Why the last life ended."""
    checks: tuple[Check, ...] = ()
    heard_ns: int = 0
    """Time of the last beat, or of the start."""


class ReaderProcess:
    """Owned by the event loop; a thread of its own runs the lives. Other threads may read."""

    def __init__(
        self,
        config: Config,
        *,
        clock: Clock,
        api_port: int | None,
        on_room: Callable[[str, Mapping[str, Any]], None],
    ) -> None:
        """Start the process; it waits for `begin`. `on_room` is called in the thread."""
        self._config = config
        self._clock = clock
        self._api_port = api_port
        self._on_room = on_room
        self._now = ReaderState(heard_ns=clock.monotonic_ns())
        self._commits = CommitSignal()
        """Lives as long as the log: its writer may notify at any time."""
        self._life = _Life.start(self._commits)
        self._log: Log | None = None
        self._otlp: OtlpAddresses | None = None
        self._status: Callable[[], WriterStatus] | None = None
        self._groups: Callable[[GroupsQuery], ConsumerGroups] | None = None
        self._thread: threading.Thread | None = None
        self._is_stopping = threading.Event()
        self._early_count = 0
        self._exit_count = 0
        self._ready_ns: int | None = None
        """When the current life became ready."""
        self.start_error: FrazilError | None = None
        """Why the first life could not open its components."""
        self.first_done = threading.Event()
        """The first life is ready, or has failed."""
        self.stop_facts: dict[str, Any] = {}
        self.own_ports: dict[str, int] = {}
        """Where the first life listens, by component; later ones listen there again."""

    def begin(
        self,
        log: Log,
        otlp: OtlpAddresses,
        status: Callable[[], WriterStatus],
        groups: Callable[[GroupsQuery], ConsumerGroups],
    ) -> None:
        """Let the reader open its components: the log is open now."""
        self._log, self._otlp, self._status, self._groups = log, otlp, status, groups
        log.writer.listen(self._commits.notify)
        self._thread = threading.Thread(target=self._run, name="frazil-reader", daemon=True)
        self._thread.start()

    @property
    def is_running(self) -> bool:
        """Whether it can take connections."""
        return self._now.state == "running"

    @property
    def silence_s(self) -> float:
        """Seconds since the last beat."""
        return self._seconds_since(self._now.heard_ns)

    def hand_over(self, accepted: socket.socket) -> bool:
        """Give a connection to the reader. Returns False if it cannot take it now."""
        try:
            socket.send_fds(self._life.connections, [b"c"], [accepted.fileno()])
        except OSError:
            return False
        return True

    def checks(self) -> list[Check]:
        """Return the state of the reader, and of its components as of its last beat."""
        now = self._now
        if now.state != "running":
            why = f"the reader is {now.state}" + (f": {now.why}" if now.why else "")
            next_step = "ingest continues; it restarts automatically, see the log of the node"
            return [Check(component="reader", state="failed", why=why, next_step=next_step)]
        if self.silence_s > LATE_S:
            why = f"the reader has not responded for {self.silence_s:.1f} s"
            next_step = f"ingest continues; after {SILENCE_S_MAX:g} s it is restarted"
            return [Check(component="reader", state="failed", why=why, next_step=next_step)]
        return [Check(component="reader", state="ok"), *now.checks]

    def watch(self) -> None:
        """Kill a reader that does not respond. Called about once a second."""
        limit = SILENCE_S_MAX if self.is_running else START_S_MAX
        if self._thread is not None and self.silence_s > limit:
            logger.error("reader does not respond, killing it", extra={"pid": self._life.pid})
            self._set(heard_ns=self._clock.monotonic_ns())
            self._life.kill()

    def stop(self, within_s: float) -> None:
        """Ask the reader to close and wait for it, at most `within_s`; then kill it."""
        self._is_stopping.set()
        assert self._thread is not None
        with suppress(OSError):  # it may have ended already
            self._life.control.send(Stop(within_s))
        self._thread.join(within_s + KILL_WAIT_S)
        if self._thread.is_alive():
            logger.error("reader did not stop in time, killing it")
            self._life.kill()
            self._thread.join()

    def abandon(self) -> None:
        """End the reader without asking, as when the node cannot start."""
        self._is_stopping.set()
        if self._thread is None:
            self._life.close()
        else:
            self._life.kill()
            self._thread.join()

    def _run(self) -> None:
        """Run one life after another, until `stop`."""
        while True:
            began_ns = self._clock.monotonic_ns()
            self._ready_ns = None
            reason = self._live()
            self.first_done.set()
            if self._is_stopping.is_set() or self.start_error is not None:
                self._set(state="stopped")
                return
            ENDED.add(reason=reason)
            logger.error("reader ended, restarting it", extra={"reason": reason})
            self._set(state="restarting", why=reason, pid=None, checks=())
            if self._seconds_since(began_ns) > EXITS_S:
                self._exit_count = 0
            self._exit_count += reason.startswith(EXIT)
            pause_s = self._next_pause_s()
            if self._is_stopping.wait(pause_s):
                self._set(state="stopped")
                return
            self._life = _Life.start(self._commits)

    def _next_pause_s(self) -> float:
        """Return the pause after a life that has ended: longer after each one that ended early."""
        ready_ns = self._ready_ns
        is_early = ready_ns is None or self._seconds_since(ready_ns) < WELL_S
        self._early_count = self._early_count + 1 if is_early else 0
        longest_s = BACKOFF_S_MAX if ready_ns is None else READY_BACKOFF_S_MAX
        return min(longest_s, BACKOFF_S * 2.0 ** min(max(0, self._early_count - 1), BACKOFFS_MAX))

    def _seconds_since(self, begin_ns: int) -> float:
        return (self._clock.monotonic_ns() - begin_ns) / (1000 * NS_PER_MS)

    def _live(self) -> str:
        """Serve one life of the reader until it ends. Returns the reason."""
        assert self._log is not None and self._otlp is not None
        life, log = self._life, self._log
        STARTED.add()
        self._set(pid=life.pid, heard_ns=self._clock.monotonic_ns())
        serving = [
            threading.Thread(target=serve, args=(log, peer), name=name, daemon=True)
            for serve, peer, name in (
                (serve_observer, life.log, "frazil-observer"),
                (serve_appends, life.appends, "frazil-append"),
            )
        ]
        for thread in serving:
            thread.start()
        try:
            hello = Hello(
                config=msgspec.json.encode(self._config_of_life()),
                otlp=self._otlp,
                api_port=self._api_port,
                log_levels={
                    name: logging.getLogger(name).getEffectiveLevel() for name in ("", __package__)
                },
                may_exit=self._exit_count < EXITS_MAX,
            )
            life.control.send(hello)
            while True:
                self._handle(life, life.control.receive())
        except (EOFError, OSError):
            return life.wait()
        finally:
            life.close()
            for thread in serving:
                thread.join()

    def _config_of_life(self) -> Config:
        """Return the settings, with the ports that were free for the first life."""
        changed = {
            name: msgspec.structs.replace(getattr(self._config, name), port=port)
            for name, port in self.own_ports.items()
        }
        return msgspec.structs.replace(self._config, **changed)

    def _handle(self, life: _Life, message: ToWriter) -> None:
        match message:
            case RoomReady(name, facts):
                if name in OWN_PORTS:
                    self.own_ports[name] = facts["port"]
                if name == "spark" or not self.first_done.is_set():
                    self._on_room(name, facts)
            case ReaderReady():
                self._ready_ns = self._clock.monotonic_ns()
                self._set(state="running", heard_ns=self._ready_ns)
                self.first_done.set()
            case Beat(checks):
                self._set(checks=tuple(checks), heard_ns=self._clock.monotonic_ns())
            case StatusRequest():
                assert self._status is not None
                life.control.send(StatusReply(self._status()))
            case GroupsRequest(number, query):
                assert self._groups is not None
                life.control.send(GroupsReply(number, self._groups(query)))
            case StartFailed(kind, text):
                if not self.first_done.is_set():
                    error: type[FrazilError] = getattr(errors, kind, Unavailable)
                    self.start_error = error(text)
                logger.error("reader cannot start", extra={"reason": text})
            case ReaderStopped(facts):
                self.stop_facts = facts

    def _set(self, **changes: Any) -> None:
        self._now = replace(self._now, **changes)


class _Life:
    """One reader process, and the writer's ends of what it inherits."""

    def __init__(
        self,
        process: subprocess.Popen[bytes],
        control: socket.socket,
        log: socket.socket,
        appends: socket.socket,
        connections: socket.socket,
    ) -> None:
        self.control: Channel[ToWriter] = Channel(control, ToWriter)
        self.log = log
        self.appends = appends
        self.connections = connections
        self._process = process

    @classmethod
    def start(cls, commits: CommitSignal) -> _Life:
        """Start the program. It loads its modules, then waits for `Hello`."""
        with ExitStack() as theirs, ExitStack() as undo:
            ours = []
            inherited = []
            for _ in range(4):
                our_end, their_end = socket.socketpair()
                undo.callback(our_end.close)
                theirs.callback(their_end.close)
                ours.append(our_end)
                inherited.append(their_end.fileno())
            control, log, appends, connections = ours
            connections.setblocking(False)
            files = [*inherited[:3], commits.descriptor, inherited[3]]
            process = subprocess.Popen(
                [sys.executable, "-m", "frazil.reader", *map(str, files)],
                pass_fds=files,
                stdin=subprocess.DEVNULL,
                env={**ENVIRONMENT, **os.environ},
            )
            undo.pop_all()
        return cls(process, control, log, appends, connections)

    @property
    def pid(self) -> int:
        return self._process.pid

    def kill(self) -> None:
        self._process.kill()

    def wait(self) -> str:
        """Wait for the end of the process. Returns how it ended."""
        code = self._process.wait()
        return f"signal {-code}" if code < 0 else f"{EXIT} {code}"

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        self.control.close()
        for served in (self.log, self.appends):
            with suppress(OSError):  # the other end may be closed
                served.shutdown(socket.SHUT_RDWR)  # ends its thread, which closes it
        self.connections.close()
