"""A replication connection: commands, and the stream of a slot, through libpq.

psycopg has no replication of its own, but libpq's functions for COPY carry it. Everything waits
with a time limit, so that its caller can go on living meanwhile.
"""

from __future__ import annotations

import select
import struct
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import psycopg

from frazil.connectors.postgres.changes import POSTGRES_EPOCH_US
from frazil.connectors.postgres.json_values import SESSION_SETTINGS
from frazil.connectors.postgres.positions import lsn_text, parse_lsn
from frazil.errors import FrazilError, Malformed, Rejected, Unavailable

if TYPE_CHECKING:
    from psycopg.pq.abc import PGconn, PGresult

CONNECT_TIMEOUT_S = 10
SETTINGS: Mapping[str, str] = {
    **SESSION_SETTINGS,
    # A source that waits for the log of its node does not answer for a while.
    "wal_sender_timeout": "300s",
    "statement_timeout": "0",
    "idle_in_transaction_session_timeout": "0",
    "lock_timeout": "10s",
}
XLOG_DATA = struct.Struct(">cQQq")
KEEPALIVE = struct.Struct(">cQqB")
STATUS = struct.Struct(">cQQQqB")
REFUSED = ("28", "3D", "42", "22", "0A")
"""Classes of SQLSTATE that do not go away by themselves: authorization, no such database or object,
no privilege, invalid parameters, not supported."""
NOT_YET = frozenset({"55006", "57P01", "57P03"})
"""The slot is active, the server shuts down or starts."""


class System(NamedTuple):
    """The answer to IDENTIFY_SYSTEM."""

    system: str
    timeline: int
    wal_lsn: int
    database: str


class Slot(NamedTuple):
    """A slot that was just created: changes that commit from `consistent_lsn` on are sent by it,
    those before are in the snapshot, if it has one."""

    name: str
    consistent_lsn: int
    snapshot: str


class ChangeData(NamedTuple):
    """A message of the plugin, and where the server's log has it."""

    lsn: int
    data: bytes


class Keepalive(NamedTuple):
    """Everything below an LSN was sent."""

    lsn: int
    wants_reply: bool


def connect(
    connection: Mapping[str, str], application: str, *, is_replication: bool = False
) -> psycopg.Connection[tuple[Any, ...]]:
    """Connect. Raises `Unavailable` if the server does not let us, as it may in a moment."""
    settings = " ".join(f"-c {name}={value}" for name, value in SETTINGS.items())
    given: dict[str, Any] = {"connect_timeout": CONNECT_TIMEOUT_S, **connection}
    given |= {
        "application_name": application,
        "client_encoding": "UTF8",
        "options": f"{connection.get('options', '')} {settings}".strip(),
    }
    if is_replication:
        given["replication"] = "database"
    try:
        return psycopg.Connection.connect(autocommit=True, **given)
    except psycopg.Error as error:
        raise Unavailable(f"no connection to Postgres: {_one_line(error)}") from error


def error_of(error: Exception, what: str) -> FrazilError:
    """Return an error of Postgres as ours: whether trying again may help."""
    state = getattr(error, "sqlstate", None) or ""
    return _error(state, f"{what}: {_one_line(error)}")


def _error(state: str, text: str) -> FrazilError:
    if state and state not in NOT_YET and state.startswith(REFUSED):
        return Rejected(text)
    return Unavailable(text)


def _one_line(error: object) -> str:
    return " ".join(str(error).split())


class ReplicationConnection:
    """A connection that streams changes. Close it, or use it in `with`."""

    def __init__(self, connection: Mapping[str, str], application: str) -> None:
        self._connection = connect(connection, application, is_replication=True)
        self._pg: PGconn = self._connection.pgconn
        self._buffer = b""

    def identify(self) -> System:
        system, timeline, lsn, database = self._command("IDENTIFY_SYSTEM")
        return System(system, int(timeline), parse_lsn(lsn), database)

    def begin_create(self, name: str, *, is_temporary: bool) -> None:
        """Begin to create a slot: one that goes with this connection, with a snapshot, or one that
        stays. The server first waits for all transactions that are open."""
        kind, snapshot = ("TEMPORARY ", "EXPORT") if is_temporary else ("", "NOEXPORT")
        command = f"CREATE_REPLICATION_SLOT {name} {kind}LOGICAL pgoutput {snapshot}_SNAPSHOT"
        try:
            self._pg.send_query(command.encode())
        except psycopg.Error as error:
            raise Unavailable(f"the replication connection broke: {_one_line(error)}") from error

    def created(self, timeout_s: float) -> Slot | None:
        """Return the slot that was begun; None if the server still waits."""
        if self._pg.is_busy():
            self._wait(timeout_s)
        if self._pg.is_busy():
            return None
        row = self._row("CREATE_REPLICATION_SLOT", self._pg.get_result())
        while self._pg.get_result() is not None:
            pass
        return Slot(row[0], parse_lsn(row[1]), row[2])

    def start(self, slot: str, lsn: int, publication: str) -> None:
        """Begin to stream. The server goes on where the slot is if that is further."""
        quoted = publication.replace('"', '""').replace("'", "''")
        result = self._pg.exec_(
            f"START_REPLICATION SLOT {slot} LOGICAL {lsn_text(lsn)} (proto_version '1', "
            f"publication_names '\"{quoted}\"')".encode()
        )
        if result.status != psycopg.pq.ExecStatus.COPY_BOTH:
            raise _failed("START_REPLICATION", result)

    def receive(self, timeout_s: float) -> ChangeData | Keepalive | None:
        """Return the next message; None if none comes within this time."""
        size, data = self._copy_data()
        if size == 0:
            if timeout_s <= 0:
                return None
            self._wait(timeout_s)
            size, data = self._copy_data()
            if size == 0:
                return None
        if size < 0:
            raise self._ended()
        return _parse(bytes(data))

    def send_status(self, durable_lsn: int, *, now_us: int, wants_reply: bool = False) -> None:
        """Acknowledge: what commits below `durable_lsn` is not needed any more."""
        at = now_us - POSTGRES_EPOCH_US
        data = STATUS.pack(b"r", durable_lsn, durable_lsn, durable_lsn, at, wants_reply)
        try:
            self._pg.put_copy_data(data)
            while self._pg.flush():
                select.select([], [self._pg.socket], [], CONNECT_TIMEOUT_S)
        except psycopg.Error as error:
            raise Unavailable(f"the replication connection broke: {_one_line(error)}") from error

    def _copy_data(self) -> tuple[int, bytes | memoryview]:
        try:
            return self._pg.get_copy_data(1)
        except psycopg.Error as error:
            raise Unavailable(f"the replication connection broke: {_one_line(error)}") from error

    def _wait(self, timeout_s: float) -> None:
        try:
            if select.select([self._pg.socket], [], [], timeout_s)[0]:
                self._pg.consume_input()
        except (psycopg.Error, OSError) as error:
            raise Unavailable(f"the replication connection broke: {_one_line(error)}") from error

    def _ended(self) -> FrazilError:
        """Return why the stream ended."""
        result = self._pg.get_result()
        if result is not None and result.error_message:
            return _failed("the replication stream ended", result)
        return Unavailable("the server ended the replication stream")

    def _command(self, command: str) -> list[str]:
        return self._row(command, self._pg.exec_(command.encode()))

    def _row(self, command: str, result: PGresult | None) -> list[str]:
        """Return the only row of a command's result."""
        if result is None or result.status != psycopg.pq.ExecStatus.TUPLES_OK:
            raise _failed(command, result)
        return [(result.get_value(0, index) or b"").decode() for index in range(result.nfields)]

    def close(self) -> None:
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _failed(what: str, result: PGresult | None) -> FrazilError:
    if result is None:
        return Unavailable(f"{what}: the replication connection broke")
    sqlstate = result.error_field(psycopg.pq.DiagnosticField.SQLSTATE) or b""
    return _error(sqlstate.decode(), f"{what}: {_one_line(result.error_message.decode())}")


def _parse(data: bytes) -> ChangeData | Keepalive:
    try:
        if data[:1] == b"w":
            _, lsn, _, _ = XLOG_DATA.unpack_from(data)
            return ChangeData(lsn, data[XLOG_DATA.size :])
        if data[:1] == b"k":
            _, lsn, _, reply = KEEPALIVE.unpack(data)
            return Keepalive(lsn, reply == 1)
    except struct.error as error:
        raise Malformed(f"a message of the replication stream is cut: {error}") from None
    raise Malformed(f"a message of the unknown kind {data[:1]!r} in the replication stream")


def quoted(names: Sequence[str]) -> str:
    """Return names as SQL identifiers, with commas between."""
    return ", ".join('"' + name.replace('"', '""') + '"' for name in names)
