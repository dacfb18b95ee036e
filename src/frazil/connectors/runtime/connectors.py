"""Connectors: all sources and sinks of a node, and the statements about them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta

import pyarrow as pa

from frazil.connectors.messages import ConnectorFailed, ConnectorRunning, Role
from frazil.connectors.runtime.connector_log import ConnectorLog
from frazil.connectors.runtime.connector_process import ConnectorProcess, Wakeup
from frazil.connectors.runtime.connector_state import ConnectorStates
from frazil.connectors.runtime.source_run import check_source_topic
from frazil.connectors.runtime.supervisor import (
    ConnectorSpec,
    ConnectorStatus,
    ConnectorSupervisor,
    ConnectorSurroundings,
)
from frazil.connectors.step_names import step_prefix, subscriber_name
from frazil.definitions import (
    CreateSink,
    CreateSource,
    Drop,
    Pause,
    Resume,
    StatementCall,
    StatementExecutor,
    StoredDefinition,
    done,
    drop_definition,
)
from frazil.disk import Disk
from frazil.errors import FrazilError, Malformed, TooLarge, Unavailable, Unknown
from frazil.log import check_name
from frazil.model import NS_PER_MS, Clock, MiB
from frazil.settings import ConnectorsConfig, connection_options

CHECK_S = 20.0
"""How long the process of a new connector may take to check its options."""
BATCH_BYTES_MAX = 16 * MiB
"""Of one batch; half of what the channel to the log's owner takes."""
ROLES: tuple[Role, ...] = ("source", "sink")
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
TIME = pa.timestamp("us", tz="UTC")
SHOW_SCHEMA = pa.schema(
    [
        pa.field("kind", pa.string(), nullable=False),
        pa.field("name", pa.string(), nullable=False),
        pa.field("type", pa.string(), nullable=False),
        pa.field("topic", pa.string(), nullable=False),
        pa.field("state", pa.string(), nullable=False),
        pa.field("why", pa.string()),
        pa.field("records", pa.int64(), nullable=False),
        pa.field("bytes", pa.int64(), nullable=False),
        pa.field("dead_letters", pa.int64(), nullable=False),
        pa.field("streams", pa.int64()),
        pa.field("lag_offsets", pa.int64()),
        pa.field("last_time", TIME),
        pa.field("starts", pa.int64(), nullable=False),
        pa.field("failures", pa.int64(), nullable=False),
        pa.field("last_error", pa.string()),
        pa.field("definition", pa.string(), nullable=False),
        pa.field("problem", pa.string()),
    ]
)


class Connectors:
    """Any thread may call it, between `start` and `close`."""

    def __init__(
        self, executor: StatementExecutor, around: ConnectorSurroundings, *, is_running: bool
    ) -> None:
        """Without `is_running`, connectors are only defined."""
        self._executor = executor
        self._definitions = executor.definitions
        self._around = around
        self._is_running = is_running
        self._lock = threading.Lock()
        """Held while a connector is created or dropped."""
        self._supervisors: dict[tuple[Role, str], ConnectorSupervisor] = {}
        """Replaced as a whole."""
        self._is_closed = False

    def start(self) -> None:
        """Start all that are defined."""
        for role in ROLES:
            for stored in self._definitions.of_kind(role):
                if isinstance(stored.statement, CreateSource | CreateSink):
                    self._supervise(spec_of(stored.statement))

    def close(self) -> None:
        """End all processes."""
        with self._lock:
            self._is_closed = True
            supervisors = list(self._supervisors.values())
            for supervisor in supervisors:
                supervisor.begin_close()
            for supervisor in supervisors:
                supervisor.close()

    def statuses(self) -> list[ConnectorStatus]:
        """Return all connectors that run here, by role and name."""
        found = [each.status() for each in self._supervisors.values()]
        return sorted(found, key=lambda each: (ROLES.index(each.spec.role), each.spec.name))

    def restart(self, role: Role, name: str) -> ConnectorStatus:
        """End the process of a connector, and start another one. `Unknown` if there is none."""
        supervisor = self._supervisors.get((role, name))
        if supervisor is None:
            raise Unknown(f"there is no {role} {name}")
        supervisor.restart()
        return supervisor.status()

    def _supervise(self, spec: ConnectorSpec) -> None:
        if not self._is_running or self._is_closed:
            return
        supervisor = ConnectorSupervisor(spec, self._around)
        self._supervisors = {**self._supervisors, (spec.role, spec.name): supervisor}
        supervisor.start()

    def _end(self, role: Role, name: str) -> None:
        supervisor = self._supervisors.get((role, name))
        if supervisor is not None:
            supervisor.close()
            self._supervisors = {
                key: each for key, each in self._supervisors.items() if key != (role, name)
            }

    def register(self) -> None:
        """Carry out the statements about connectors."""
        executor = self._executor
        executor.register(CreateSource, self._create)
        executor.register(CreateSink, self._create)
        for role in ROLES:
            executor.register_drop(role, self._drop)
            executor.register_show(role, self._show(role))
            executor.register_pause(role, self._pause)
            executor.register_resume(role, self._resume)

    def _create(self, call: StatementCall) -> pa.Table:
        statement = call.statement
        assert isinstance(statement, CreateSource | CreateSink)
        self._definitions.check_new(statement)
        spec = spec_of(statement)
        check_spec(spec)
        self._check(spec)
        with self._lock:
            self._definitions.check_new(statement)
            known = self._definitions.find(spec.role, spec.name)
            count = sum(len(self._definitions.of_kind(role)) for role in ROLES)
            if known is None and count >= self._around.config.count_max:
                raise TooLarge(
                    f"there are {count} connectors, which is connectors.count_max; drop one"
                )
            self._check_same_topic(spec, known)
            self._end(spec.role, spec.name)
            if known is None:
                self._forget(spec.role, spec.name)
            try:
                self._around.states.put(spec.role, spec.name, None)
                self._definitions.put(call.parsed)
            except FrazilError:
                if known is not None and isinstance(known.statement, CreateSource | CreateSink):
                    self._supervise(spec_of(known.statement))  # the one before goes on
                raise
            self._supervise(spec)
        runs = "" if self._is_running else "; it runs when a node has this folder"
        return done(f"created {spec.role} {spec.name}{runs}")

    def _check_same_topic(self, spec: ConnectorSpec, known: StoredDefinition | None) -> None:
        """Refuse to replace a sink by one of another topic: its progress is in offsets."""
        if known is None or not isinstance(known.statement, CreateSink):
            return
        if known.statement.topic != spec.topic:
            raise Malformed(
                f"sink {spec.name} reads {known.statement.topic}; DROP SINK {spec.name} first, or "
                "give the new one another name"
            )

    def _check(self, spec: ConnectorSpec) -> None:
        """Have a process check the options. Raises what is wrong with them."""
        around = self._around
        start = around.start_message(spec, is_check=True)
        wakeup = Wakeup()
        process = ConnectorProcess(
            spec.name,
            wakeup,
            around.clock,
            memory_bytes_max=around.config.memory_bytes_max,
        )
        try:
            process.send(start)
            end_ns = around.clock.monotonic_ns() + int(CHECK_S * 1000) * NS_PER_MS
            while around.clock.monotonic_ns() < end_ns:
                process.wait(0.25, reads=True)
                for message in process.messages():
                    if isinstance(message, ConnectorFailed):
                        raise Malformed(f"{spec.role} {spec.name}: {message.message}")
                    if isinstance(message, ConnectorRunning):
                        return
                if process.has_ended:
                    raise Unavailable(
                        f"connector type {spec.type} cannot be used: its process "
                        f"ended with {process.close()}"
                    )
            raise Unavailable(f"connector type {spec.type} did not answer within {CHECK_S:g} s")
        finally:
            process.close()
            wakeup.close()

    def _forget(self, role: Role, name: str) -> None:
        """Forget how far a connector was."""
        if role == "source":
            self._around.log.sources.forget(step_prefix(name))
            return
        with suppress(Unknown):
            self._around.log.unsubscribe(subscriber_name(name))

    def _drop(self, call: StatementCall) -> pa.Table:
        statement = call.statement
        assert isinstance(statement, Drop)
        role: Role = "source" if statement.kind == "source" else "sink"
        with self._lock:
            is_known = self._definitions.find(role, statement.name) is not None
            if is_known:
                self._end(role, statement.name)
            rows = drop_definition(self._definitions, call)
            if is_known:
                self._forget(role, statement.name)
                self._around.states.put(role, statement.name, None)
        return rows

    def _pause(self, call: StatementCall) -> pa.Table:
        assert isinstance(call.statement, Pause)
        return self._change(call.statement, "paused", ConnectorSupervisor.pause)

    def _resume(self, call: StatementCall) -> pa.Table:
        assert isinstance(call.statement, Resume)
        return self._change(call.statement, "resumed", ConnectorSupervisor.resume)

    def _change(
        self, statement: Pause | Resume, word: str, change: Callable[[ConnectorSupervisor], None]
    ) -> pa.Table:
        role: Role = "source" if statement.kind == "source" else "sink"
        self._definitions.get(role, statement.name)
        supervisor = self._supervisors.get((role, statement.name))
        if supervisor is None:
            raise Unavailable("connectors run in a node only, which this process is not")
        change(supervisor)
        return done(f"{word} {role} {statement.name}")

    def _show(self, role: Role) -> Callable[[StatementCall], pa.Table]:
        def show(_: StatementCall) -> pa.Table:
            rows = [
                {
                    "kind": role,
                    "name": stored.name,
                    "definition": stored.text,
                    "problem": stored.error,
                    **self._shown(role, stored),
                }
                for stored in self._definitions.all(role)
            ]
            return pa.Table.from_pylist(rows, SHOW_SCHEMA)

        return show

    def _shown(self, role: Role, stored: StoredDefinition) -> Mapping[str, object]:
        supervisor = self._supervisors.get((role, stored.name))
        if supervisor is not None:
            return shown(supervisor.status())
        if not isinstance(stored.statement, CreateSource | CreateSink):  # a broken file
            spec = ConnectorSpec(role=role, name=stored.name, type="", topic="", connection_name="")
        else:
            spec = spec_of(stored.statement)
        return shown(ConnectorStatus(spec=spec, word="off", why=stored.error or ""))


def spec_of(statement: CreateSource | CreateSink) -> ConnectorSpec:
    """Return what a definition says."""
    return ConnectorSpec(
        role="source" if isinstance(statement, CreateSource) else "sink",
        name=statement.name,
        type=statement.type,
        topic=statement.topic,
        connection_name=statement.connection,
        options=dict(statement.options),
    )


def check_spec(spec: ConnectorSpec) -> None:
    """Raise `Malformed` if the topic of a definition is none that a connector may have."""
    if spec.role == "source":
        check_source_topic(spec.topic)
    else:
        check_name(spec.topic, "topic")


def shown(status: ConnectorStatus) -> dict[str, object]:
    """Return what SHOW SOURCES and SHOW SINKS have beside the definition."""
    return {
        "type": status.spec.type,
        "topic": status.spec.topic,
        "state": status.word,
        "why": status.why or None,
        "records": status.records,
        "bytes": status.bytes,
        "dead_letters": status.refused,
        "streams": status.streams if status.spec.role == "source" else None,
        "lag_offsets": status.lag_offsets,
        "last_time": _time(status.last_ms),
        "starts": status.starts,
        "failures": status.failures,
        "last_error": status.last_error or None,
    }


def _time(time_ms: int | None) -> datetime | None:
    return None if time_ms is None else EPOCH + timedelta(milliseconds=time_ms)


def open_connectors(
    executor: StatementExecutor,
    log: ConnectorLog,
    disk: Disk,
    config: ConnectorsConfig,
    clock: Clock,
    *,
    connections: Mapping[str, str],
    roots: Sequence[str],
    batch_bytes_max: int,
    is_running: bool,
) -> Connectors:
    """Return all defined connectors, not started, and carry out their statements."""
    around = ConnectorSurroundings(
        log=log,
        disk=disk,
        clock=clock,
        config=config,
        states=ConnectorStates(disk),
        connection_of=lambda name: connection_options(name, connections),
        roots=roots,
        batch_bytes_max=min(batch_bytes_max, BATCH_BYTES_MAX),
    )
    connectors = Connectors(executor, around, is_running=is_running)
    connectors.register()
    return connectors
