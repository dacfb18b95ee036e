"""ConnectorSupervisor: runs one connector, life after life, in a thread of its own.

    life      start the process ─> batches or deliveries ... ends
    between   wait, longer after each life that achieved nothing, then the next life
    failed    the connector says that a retry cannot help: until RESUME

Nothing that a process does can hold up the node: it is killed if it does not respond, what it sends
is bounded by what the log has taken, and what it prints is read slowly.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from msgspec.structs import replace as replaced

from frazil.connectors.messages import (
    BatchesDelivered,
    ConnectorAlive,
    ConnectorFailed,
    ConnectorFinished,
    ConnectorRunning,
    FetchedBatch,
    Role,
    StartConnector,
    StopConnector,
    StreamPosition,
)
from frazil.connectors.options import OptionValue
from frazil.connectors.runtime.connector_log import ConnectorLog
from frazil.connectors.runtime.connector_process import ConnectorProcess, Wakeup
from frazil.connectors.runtime.connector_state import ConnectorStates
from frazil.connectors.runtime.sink_run import SinkRun
from frazil.connectors.runtime.source_run import SourceRun
from frazil.connectors.step_names import step_prefix
from frazil.definitions import masked
from frazil.disk import Disk
from frazil.errors import FrazilError, Malformed, TooLarge, Unavailable
from frazil.metrics import Counter
from frazil.model import NS_PER_MS, Clock
from frazil.settings import ConnectorsConfig

logger = logging.getLogger(__name__)

TICK_S = 0.25
"""How long the thread waits for something to happen, at most."""
STOP_NS = 5_000 * NS_PER_MS
"""How long a process may take to close its connector; then it is killed."""
START_NS = 60_000 * NS_PER_MS
"""How long a process may take until it is heard of for the first time; imports take time."""
CLOSE_S = 10.0
LAG_NS = 250 * NS_PER_MS
"""How often the lag of a busy sink is computed."""
INTERNAL = "internal error; see the log of the node"

RECORDS = Counter("frazil.connectors.records", "Records of sources and sinks.")
BYTES = Counter("frazil.connectors.bytes", "Bytes of these records in the log.")
REFUSED = Counter("frazil.connectors.dead_letters", "Records that a sink could not deliver.")
STARTS = Counter("frazil.connectors.starts", "Processes of connectors started.")
ENDS = Counter("frazil.connectors.failures", "Processes that ended by an error.")

ConnectorWord = Literal["starting", "running", "paused", "backing off", "failed", "off"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectorSpec:
    """What a definition says."""

    role: Role
    name: str
    type: str
    topic: str
    connection_name: str
    options: Mapping[str, OptionValue] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectorSurroundings:
    """What all connectors of a node share."""

    log: ConnectorLog
    disk: Disk
    clock: Clock
    config: ConnectorsConfig
    states: ConnectorStates
    connection_of: Callable[[str], Mapping[str, str]]
    """Options of a connection of the configuration. `Unknown` if there is none."""
    roots: Sequence[str]
    batch_bytes_max: int

    def start_message(
        self,
        spec: ConnectorSpec,
        *,
        epoch: int = 0,
        known: Sequence[StreamPosition] = (),
        is_check: bool = False,
    ) -> StartConnector:
        """Return what the process of a connector is told first."""
        return StartConnector(
            role=spec.role,
            name=spec.name,
            type_name=spec.type,
            options=dict(spec.options),
            topic=spec.topic,
            connection_name=spec.connection_name,
            connection=dict(self.connection_of(spec.connection_name)),
            roots=list(self.roots),
            epoch=epoch,
            known=list(known),
            batch_bytes_max=self.batch_bytes_max,
            in_flight_bytes_max=self.config.in_flight_bytes_max,
            is_check=is_check,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectorStatus:
    """What is known of a connector. Replaced as a whole."""

    spec: ConnectorSpec
    word: ConnectorWord = "starting"
    why: str = ""
    """Why it does not run."""
    pid: int | None = None
    last_error: str = ""
    last_error_ms: int | None = None
    failures: int = 0
    """Lives in a row that achieved nothing."""
    starts: int = 0
    next_start_ms: int | None = None
    records: int = 0
    """Durable or delivered since the node has started."""
    bytes: int = 0
    refused: int = 0
    """Records of a sink that went to the dead letters."""
    last_ms: int | None = None
    """When records were last durable or delivered."""
    streams: int = 0
    """Of a source."""
    lag_offsets: int | None = None
    """Of a sink: what it has not delivered yet."""


class _Ended(Exception):
    """A life has ended by an error."""

    def __init__(self, reason: str, *, is_fatal: bool = False) -> None:
        super().__init__(reason)
        self.is_fatal = is_fatal


class ConnectorSupervisor:
    """Any thread may call it."""

    def __init__(self, spec: ConnectorSpec, around: ConnectorSurroundings) -> None:
        self._spec = spec
        self._around = around
        self._clock = around.clock
        self._changed = threading.Condition()
        self._is_closed = False
        self._is_cut = False
        """The current life is to end: something has changed."""
        self._has_achieved = False
        """The current life has made something durable."""
        self._lag_ns = 0
        self._wakeup = Wakeup()
        self._status = ConnectorStatus(spec=spec)
        self._thread = threading.Thread(
            target=self._run, name=f"frazil-connect-{spec.name}", daemon=True
        )

    def start(self) -> None:
        self._thread.start()

    def status(self) -> ConnectorStatus:
        return self._status

    def pause(self) -> None:
        """End the process, and start no other until `resume`. Durable on return."""
        self._change(is_paused=True)

    def resume(self) -> None:
        """Start again, whatever was the reason to stop. Durable on return."""
        self._change(is_paused=False, failure="")

    def restart(self) -> None:
        """End the process, and start another one at once."""
        with self._changed:
            self._note(failures=0)
            self._cut()

    def _change(self, **changes: object) -> None:
        states, spec = self._around.states, self._spec
        with self._changed:
            state = states.get(spec.role, spec.name)
            states.put(spec.role, spec.name, replaced(state, **changes))
            self._note(failures=0)
            self._cut()

    def _cut(self) -> None:
        self._is_cut = True
        self._wakeup.set()
        self._changed.notify_all()

    def begin_close(self) -> None:
        """End the process; `close` waits for that."""
        with self._changed:
            self._is_closed = True
            self._cut()

    def close(self) -> None:
        """End the process and the thread."""
        self.begin_close()
        if self._thread.ident is not None:
            self._thread.join(CLOSE_S)
        if not self._thread.is_alive():
            self._wakeup.close()

    def _run(self) -> None:
        while True:
            with self._changed:
                if self._is_closed:
                    return
                self._is_cut = False
                state = self._around.states.get(self._spec.role, self._spec.name)
                if state.is_paused or state.failure:
                    word: ConnectorWord = "paused" if state.is_paused else "failed"
                    self._note(word=word, why=state.failure, next_start_ms=None)
                    self._changed.wait_for(lambda: self._is_cut)
                    continue
            reason, is_fatal = self._live_once()
            if reason:
                self._wait_after(reason, is_fatal=is_fatal)

    def _live_once(self) -> tuple[str, bool]:
        """Run one life. Returns why it ended, empty if it was asked to, and whether that is
        fatal."""
        self._has_achieved = False
        try:
            self._live()
        except _Ended as error:
            return str(error), error.is_fatal
        except FrazilError as error:
            return str(error), isinstance(error, Malformed | TooLarge)
        except OSError as error:
            return f"{type(error).__name__}: {error}", False
        except Exception:  # top of loop: the next life may succeed, and the others run
            logger.exception("a connector failed", extra={"connector": self._spec.name})
            return INTERNAL, False
        finally:
            self._note(pid=None)
        return "", False

    def _wait_after(self, reason: str, *, is_fatal: bool) -> None:
        """Wait for the next life, or note that there is none."""
        spec, config = self._spec, self._around.config
        reason = masked(reason)
        now_ms = self._clock.wall_ms()
        failures = 1 if self._has_achieved else self._status.failures + 1
        ENDS.add(connector=spec.name, role=spec.role)
        logger.warning(
            "a connector has ended",
            extra={"connector": spec.name, "reason": reason, "is_fatal": is_fatal},
        )
        self._note(last_error=reason, last_error_ms=now_ms, failures=failures)
        if is_fatal:
            self._fail(reason)
            return
        pause_ms = min(config.backoff_ms << min(failures - 1, 20), config.backoff_ms_max)
        with self._changed:
            self._note(word="backing off", why=reason, next_start_ms=now_ms + pause_ms)
            self._changed.wait_for(lambda: self._is_cut, pause_ms / 1000)

    def _fail(self, reason: str) -> None:
        """Run no more until RESUME. If that cannot be stored, it counts until the next start."""
        states, spec = self._around.states, self._spec
        with self._changed:
            try:
                state = states.get(spec.role, spec.name)
                states.put(spec.role, spec.name, replaced(state, failure=reason))
            except Unavailable as error:
                logger.warning("a failure is not stored", extra={"reason": str(error)})
                self._note(word="failed", why=reason, next_start_ms=None)
                self._changed.wait_for(lambda: self._is_cut)

    def _live(self) -> None:
        around, spec = self._around, self._spec
        self._note(word="starting", why="", next_start_ms=None)
        found = []
        if spec.role == "source":
            found = list(around.log.sources.find(step_prefix(spec.name)))
        state = around.states.get(spec.role, spec.name)
        epoch = 1 + max([state.epoch, *(each.position.epoch for each in found)])
        known = []
        for each in found:
            stream = each.source.removeprefix(step_prefix(spec.name))
            if each.position.position is None:
                raise _Ended(
                    f"the last records of stream {stream!r} in {each.topic} were lost in a repair: "
                    f"DROP SOURCE {spec.name} forgets how far it was, then create it again",
                    is_fatal=True,
                )
            known.append(StreamPosition(each.topic, each.partition, stream, each.position.position))
        start = around.start_message(spec, epoch=epoch, known=known)
        around.states.put(spec.role, spec.name, replaced(state, epoch=epoch))
        run: SourceRun | SinkRun
        if spec.role == "source":
            run = self._source_run(epoch, known)
        else:
            run = SinkRun(
                spec.name,
                spec.topic,
                around.log,
                around.disk,
                self._clock,
                wake=self._wakeup.set,
                on_delivered=self._on_moved,
            )
        STARTS.add(connector=spec.name, role=spec.role)
        try:
            process = ConnectorProcess(
                spec.name,
                self._wakeup,
                self._clock,
                memory_bytes_max=around.config.memory_bytes_max,
            )
            self._note(pid=process.pid, starts=self._status.starts + 1)
            try:
                process.send(start)
                self._serve(process, run)
            finally:
                how = process.close()
                logger.info("connector process ended", extra={"connector": spec.name, "how": how})
        finally:
            self._settle(run)

    def _source_run(self, epoch: int, known: Sequence[StreamPosition]) -> SourceRun:
        return SourceRun(
            self._spec.name,
            self._spec.topic,
            epoch,
            known,
            self._around.log,
            self._clock,
            in_flight_bytes_max=self._around.config.in_flight_bytes_max,
            wake=self._wakeup.set,
            on_durable=lambda records, size: self._on_moved(records, size, 0),
        )

    def _on_moved(self, records: int, size_bytes: int, refused: int) -> None:
        spec, status = self._spec, self._status
        labels = {"connector": spec.name, "role": spec.role}
        RECORDS.add(records, **labels)
        BYTES.add(size_bytes, **labels)
        if refused:
            REFUSED.add(refused, **labels)
        self._has_achieved = True
        self._note(
            records=status.records + records,
            bytes=status.bytes + size_bytes,
            refused=status.refused + refused,
            last_ms=self._clock.wall_ms(),
            failures=0,
        )

    def _serve(self, process: ConnectorProcess, run: SourceRun | SinkRun) -> None:
        """Serve a process until it ends, or is to end."""
        heard_ns = self._clock.monotonic_ns()
        stop_ns: int | None = None
        silence_ns = self._around.config.silence_ms_max * NS_PER_MS
        while True:
            reads = isinstance(run, SinkRun) or run.takes_more
            self._wait(process, run, reads=reads, is_stopping=stop_ns is not None)
            now_ns = self._clock.monotonic_ns()
            if not reads:
                heard_ns = now_ns
            for message in process.messages() if reads else ():
                heard_ns = now_ns
                if isinstance(message, ConnectorFinished):
                    return
                self._take(message, run)
                if isinstance(run, SourceRun) and not run.takes_more:
                    break
            self._step(process, run, is_stopping=stop_ns is not None)
            if self._is_cut and stop_ns is None:
                stop_ns = now_ns + STOP_NS
                process.send(StopConnector())
            if process.has_ended and not process.has_messages:
                if stop_ns is not None:
                    return
                raise _Ended(f"the process ended without a word: {process.close()}")
            if stop_ns is not None and now_ns > stop_ns:
                logger.warning("a connector did not stop", extra={"connector": self._spec.name})
                return
            limit_ns = silence_ns if self._status.word == "running" else max(silence_ns, START_NS)
            if now_ns - heard_ns > limit_ns:
                seconds = limit_ns // NS_PER_MS // 1000
                raise _Ended(f"it did not respond for {seconds} s, and was killed")

    def _wait(
        self, process: ConnectorProcess, run: SourceRun | SinkRun, *, reads: bool, is_stopping: bool
    ) -> None:
        """Wait until there is something to do. A sink that has nothing to deliver waits for the
        log, and looks at its process now and then."""
        is_running = self._status.word == "running" and not is_stopping
        if isinstance(run, SinkRun) and run.is_idle and is_running:
            process.wait(0, reads=True)
            if self._is_cut or process.has_ended or process.has_messages:
                return
            run.wait(TICK_S)
            return
        process.wait(TICK_S, reads=reads)

    def _take(self, message: object, run: SourceRun | SinkRun) -> None:
        if isinstance(message, ConnectorRunning):
            self._note(word="running", why="")
        elif isinstance(message, ConnectorFailed):
            raise _Ended(message.message, is_fatal=message.is_fatal)
        elif isinstance(run, SourceRun) and isinstance(message, FetchedBatch):  # noqa: SIM114
            run.take(message)
        elif isinstance(run, SinkRun) and isinstance(message, BatchesDelivered):
            run.take(message)
        elif not isinstance(message, ConnectorAlive):
            raise Malformed("the process has sent a message of another role")

    def _step(
        self, process: ConnectorProcess, run: SourceRun | SinkRun, *, is_stopping: bool
    ) -> None:
        if isinstance(run, SourceRun):
            for durable in run.step():
                process.send(durable)
            why = "the log is full, and asks to wait" if run.is_waiting_for_log else ""
            if run.stream_count != self._status.streams or why != self._status.why:
                self._note(streams=run.stream_count, why=why)
            return
        run.step()
        if self._status.word == "running" and not is_stopping:
            while (delivery := run.next()) is not None:
                process.send(delivery)
        if run.is_idle or self._clock.monotonic_ns() - self._lag_ns > LAG_NS:
            self._lag_ns = self._clock.monotonic_ns()
            self._note(lag_offsets=run.lag_offsets)

    def _settle(self, run: SourceRun | SinkRun) -> None:
        """Wait until the log has answered everything, so that the next life knows how far it is;
        save the progress of a sink."""
        if isinstance(run, SinkRun):
            try:
                run.save()
            finally:
                run.close()
            return
        deadline_ns = self._clock.monotonic_ns() + STOP_NS
        while not run.is_settled and self._clock.monotonic_ns() < deadline_ns:
            self._clock.sleep(0.01)

    def _note(self, **changes: object) -> None:
        self._status = replace(self._status, **changes)  # type: ignore[arg-type]
