"""Client of a running node, returned by `frazil.connect(url)`. It has the methods and results of
`frazil.open(path)`, except readers that follow a table."""

from __future__ import annotations

import http.client
import socket
import ssl
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import quote, urlencode, urlsplit

import msgspec
import pyarrow as pa

if TYPE_CHECKING:
    from frazil.lake import Appended, Maintained
    from frazil.removal import RemovalPreview, RemovalReport, RuleStatus
from frazil import errors
from frazil.errors import FrazilError, Malformed, Overloaded, Unavailable, Unresolved
from frazil.results import (
    ARROW,
    CUT_KEY,
    ERROR_KEY,
    ErrorAnswer,
    ErrorReason,
    GivenRows,
    Limits,
    Parameters,
    Result,
    WriteToken,
    arrow_rows,
    bind_parameters,
    result_of_run,
)

CONNECT_TIMEOUT_S = 10.0
RESPONSE_TIMEOUT_S = 600.0
"""Maximum time without a byte. A first flush starts a JVM."""
ERROR_BYTES_MAX = 1024 * 1024
LINE_BYTES_MAX = 16 * 1024 * 1024
NO_ROW_LIMIT = 2**62
"""The node enforces the limit."""
LOOKUP_KEYS_MAX = 1000
"""Of one request; the node's limit."""
WRITE_BYTES = 2 * 1024 * 1024
"""Rows of one request, about: below `serve.rows_bytes_max`."""

KINDS: dict[str, type[FrazilError]] = {
    "".join(f"_{c.lower()}" if c.isupper() else c for c in name).lstrip("_"): kind
    for name, kind in vars(errors).items()
    if isinstance(kind, type) and issubclass(kind, FrazilError) and kind is not errors.Corrupt
} | {"not_found": errors.Unknown}
"""`kind` of an API error -> exception."""


class Client:
    """Safe to use from any thread: every request has its own connection."""

    def __init__(self, url: str, *, token: str | None, ca_file: str | None) -> None:
        parts = urlsplit(url if "://" in url else f"http://{url}")
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise Malformed(f"{url!r} is not the URL of a node; use http://127.0.0.1:4320")
        self.url = f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}"
        self._host = parts.hostname
        self._port = parts.port
        self._prefix = parts.path.rstrip("/")
        self._tls = _tls(ca_file) if parts.scheme == "https" else None
        self._headers = {} if token is None else {"Authorization": f"Bearer {token}"}

    def sql(
        self,
        text: str,
        parameters: Parameters | None = None,
        *,
        limits: Limits | None = None,
        engine: Literal["spark"] | None = None,
        at_least: WriteToken | Sequence[WriteToken] = (),
    ) -> Result:
        """Run one query on the node; rows are streamed while they are read. `parameters` are the
        values of `$1`, `$2` (a list) or of `$name` (a dict). With `at_least` it sees these writes
        to keyed tables."""
        limits = limits or Limits()
        if parameters is not None:
            text = bind_parameters(text, parameters, engine)
        body = {
            "sql": text,
            "format": "arrow",
            "engine": engine,
            "details": True,
            "timeout_ms": limits.timeout_ms,
            "rows_max": limits.rows_max,
            "memory_bytes_max": limits.memory_bytes_max,
            "at_least": [at_least] if isinstance(at_least, WriteToken) else list(at_least),
        }
        connection, response = self._request("POST", "/api/v1/sql", body, ARROW)
        run = _RemoteQuery(connection, response, self.url)
        return result_of_run(run, NO_ROW_LIMIT)

    def execute(self, text: str) -> Result:
        """Carry out one statement that defines or changes something, such as CREATE VIEW, and
        return its rows."""
        body = {"sql": text, "format": "arrow"}
        connection, response = self._request("POST", "/api/v1/statements", body, ARROW)
        return result_of_run(_RemoteQuery(connection, response, self.url), NO_ROW_LIMIT)

    def table(self, name: str) -> RemoteTable:
        """Return a keyed table, to write and to look up rows by key."""
        return RemoteTable(self, name)

    def upload(
        self, stage: str, path: str, chunks: Iterable[bytes], *, overwrite: bool = False
    ) -> dict[str, Any]:
        """Store a file in a stage that is a local folder of the node. It is durable on return.
        `Conflict` if it exists, unless `overwrite`."""
        target = f"/api/v1/stages/{quote(stage, safe='')}/files/{quote(path)}"
        headers = {"Content-Type": "application/octet-stream"}
        query = {"overwrite": "true"} if overwrite else {}
        connection, response = self._request(
            "PUT", _with_query(target, query), chunks, "application/json", headers
        )
        try:
            stored: dict[str, Any] = msgspec.json.decode(response.read())
            return stored
        except (OSError, http.client.HTTPException) as error:
            raise self._unreachable(error) from None
        finally:
            connection.close()

    def ask(self, text: str) -> pa.Table:
        """Run one query and return all rows. Functions of `frazil.query` take this method."""
        return self.sql(text).arrow()

    def flush(self) -> list[Appended]:
        """Append all acknowledged data to the tables; returns after the commit."""
        from frazil.lake import Appended

        answer = self.call("POST", "/api/v1/flush")
        return msgspec.convert(answer["commits"], list[Appended])

    def maintain(self) -> list[Maintained]:
        """Compact files, expire snapshots and delete orphan files."""
        from frazil.lake import Maintained

        answer = self.call("POST", "/api/v1/maintain")
        return msgspec.convert(answer["tables"], list[Maintained])

    def erase(self, where: str, *, table: str | None = None) -> RemovalReport:
        """Remove the rows that match, from one table or all, in every place of the data folder."""
        from frazil.removal import RemovalReport

        body = {"where": where, "table": table}
        return msgspec.convert(self.call("POST", "/api/v1/erase", body), RemovalReport)

    def preview_erasure(self, where: str, *, table: str | None = None) -> list[RemovalPreview]:
        """Count the rows that `erase` would remove, by table."""
        from frazil.removal import RemovalPreview

        answer = self.call("POST", "/api/v1/erase/preview", {"where": where, "table": table})
        return msgspec.convert(answer["tables"], list[RemovalPreview])

    def apply_retention(self) -> RemovalReport:
        """Remove all rows that have expired now, in every place of the data folder."""
        from frazil.removal import RemovalReport

        return msgspec.convert(self.call("POST", "/api/v1/retention"), RemovalReport)

    def preview_retention(self) -> list[RemovalPreview]:
        """Count the rows that have expired, by table."""
        from frazil.removal import RemovalPreview

        answer = self.call("POST", "/api/v1/retention/preview")
        return msgspec.convert(answer["tables"], list[RemovalPreview])

    def retention_rules(self) -> list[RuleStatus]:
        """Return the retention rules, and what they will remove when."""
        from frazil.removal import RuleStatus

        return msgspec.convert(self.get("/api/v1/retention")["rules"], list[RuleStatus])

    def get(self, path: str, parameters: Mapping[str, object] | None = None) -> Any:
        """GET a path and return the decoded JSON. Lists become repeated parameters."""
        return self.call("GET", _with_query(path, parameters or {}))

    def call(self, method: str, path: str, body: object = None) -> Any:
        """Send one request and return the decoded JSON."""
        return msgspec.json.decode(self.exchange(method, path, body))

    def exchange(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        accept: str = "application/json",
        headers: Mapping[str, str] = MappingProxyType({}),
        is_write: bool = False,
    ) -> bytes:
        """Send one request and return the body of the response. If there is none to a write, it may
        be stored or not: `Unresolved`."""
        connection, response = self._request(method, path, body, accept, headers, is_write=is_write)
        try:
            return response.read()
        except (OSError, http.client.HTTPException) as error:
            raise self._no_response(error, is_write=is_write) from None
        finally:
            connection.close()

    def lines(
        self,
        path: str,
        parameters: Mapping[str, object],
        *,
        last_event_id: str | None = None,
    ) -> Iterator[str]:
        """Yield the lines of a text stream until the node ends it. `last_event_id` resumes after
        that event."""
        target = _with_query(path, parameters)
        headers = {} if last_event_id is None else {"Last-Event-ID": last_event_id}
        connection, response = self._request("GET", target, None, "text/event-stream", headers)
        try:
            while line := response.readline(LINE_BYTES_MAX):
                yield line.decode().rstrip("\r\n")
        except (OSError, http.client.HTTPException) as error:
            raise self._unreachable(error) from None
        finally:
            connection.close()

    def _request(
        self,
        method: str,
        path: str,
        body: object,
        accept: str,
        more_headers: Mapping[str, str] = MappingProxyType({}),
        *,
        is_write: bool = False,
    ) -> tuple[http.client.HTTPConnection, http.client.HTTPResponse]:
        """Send a request and wait for the response headers. Raises on any status but 200."""
        connection = self._connection()
        headers = {**self._headers, "Accept": accept, **more_headers}
        encoded: Any = None
        if isinstance(body, bytes) or "Content-Type" in headers:
            encoded = body  # as it comes
        elif body is not None:
            encoded = msgspec.json.encode(body)
            headers["Content-Type"] = "application/json"
        try:
            connection.connect()
        except OSError as error:
            raise self._unreachable(error) from None
        try:
            connection.request(method, self._prefix + path, encoded, headers)
            assert connection.sock is not None
            connection.sock.settimeout(RESPONSE_TIMEOUT_S)
            response = connection.getresponse()
            if response.status == http.client.OK:
                return connection, response
            error_body = response.read(ERROR_BYTES_MAX)
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            raise self._no_response(error, is_write=is_write) from None
        connection.close()
        raise self._error_of(response, error_body)

    def _no_response(self, error: Exception, *, is_write: bool) -> FrazilError:
        lost = self._unreachable(error)
        if not is_write:
            return lost
        return Unresolved(f"{lost}; the rows may be stored or not: repeat the same write")

    def _connection(self) -> http.client.HTTPConnection:
        if self._tls is None:
            return http.client.HTTPConnection(self._host, self._port, timeout=CONNECT_TIMEOUT_S)
        return http.client.HTTPSConnection(
            self._host, self._port, timeout=CONNECT_TIMEOUT_S, context=self._tls
        )

    def _error_of(self, response: http.client.HTTPResponse, body: bytes) -> FrazilError:
        try:
            failure = msgspec.json.decode(body, type=ErrorAnswer).error
        except msgspec.MsgspecError:
            return Unavailable(
                f"{self.url} returned {response.status} {response.reason}, which is not Frazil; "
                "check that this is the API port"
            )
        return error_of(failure, response.getheader("Retry-After"))

    def _unreachable(self, error: Exception) -> Unavailable:
        if isinstance(error, ConnectionRefusedError):
            return Unavailable(
                f"no node is running at {self.url}; start one with `frazil up`, choose another "
                "with --url, or open a folder that no node uses with --data"
            )
        reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
        return Unavailable(f"{self.url} cannot be reached: {reason}")

    def close(self) -> None:
        """Does nothing: no connection stays open between requests."""

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _Written(msgspec.Struct, frozen=True):
    """The part of the response to a write that is used here."""

    token: WriteToken


class RemoteTable:
    """A keyed table of a node. Any thread may use it. Reads see all writes that were durable when
    they began."""

    def __init__(self, client: Client, name: str) -> None:
        self.name = name
        self._client = client
        self._path = f"/api/v1/tables/{quote(name, safe='')}"
        self._key: list[str] = client.get(self._path)["key"]

    def upsert(self, rows: GivenRows, *, idempotency_key: str | None = None) -> WriteToken:
        """Put whole rows, in place of those with the same keys. A column that is left out is null.
        Durable on return. A repetition with the same `idempotency_key` is not stored again."""
        return self._write("upsert", arrow_rows(rows), idempotency_key)

    def update(self, rows: GivenRows, *, idempotency_key: str | None = None) -> WriteToken:
        """Set some columns of rows that exist; the others keep their values. Updates of keys that
        do not exist are counted as `dead_changes`, and have no effect."""
        return self._write("update", arrow_rows(rows, same_names=True), idempotency_key)

    def delete(
        self, keys: Sequence[object] | GivenRows, *, idempotency_key: str | None = None
    ) -> WriteToken:
        """Remove rows by key: a list of keys, tuples if the key has several columns, or rows with
        the key columns. Keys that do not exist have no effect."""
        return self._write("delete", self._key_rows(keys), idempotency_key)

    def get(self, key: object) -> dict[str, object] | None:
        """Return the row of a key, a tuple if the key has several columns; None if there is
        none."""
        rows: list[dict[str, object]] = self.get_many([key]).to_pylist()
        return rows[0] if rows else None

    def get_many(self, keys: Sequence[object]) -> pa.Table:
        """Return the rows of the keys that exist, in the order of the keys."""
        if not keys:
            raise Malformed("there are no keys to look up")
        parts = [
            self._look_up(keys[begin : begin + LOOKUP_KEYS_MAX])
            for begin in range(0, len(keys), LOOKUP_KEYS_MAX)
        ]
        return pa.concat_tables(parts)

    def _look_up(self, keys: Sequence[object]) -> pa.Table:
        body = {"keys": list(keys)}
        found = self._client.exchange("POST", f"{self._path}/lookup", body, accept=ARROW)
        return pa.ipc.open_stream(found).read_all()

    def _key_rows(self, keys: Sequence[object] | GivenRows) -> pa.Table:
        if not isinstance(keys, list | tuple) or any(isinstance(key, dict) for key in keys):
            return arrow_rows(keys)
        values = [key if isinstance(key, tuple) else (key,) for key in keys]
        if any(len(value) != len(self._key) for value in values):
            raise Malformed(f"a key of table {self.name} has {len(self._key)} values")
        return arrow_rows([dict(zip(self._key, value, strict=True)) for value in values])

    def _write(self, operation: str, rows: pa.Table, key: str | None) -> WriteToken:
        """Send the rows in portions, one after the other: changes of a key stay in order."""
        offsets: dict[int, int] = {}
        row_bytes = max(1, rows.nbytes // max(1, rows.num_rows))
        count = max(1, WRITE_BYTES // row_bytes)
        for begin in range(0, rows.num_rows, count):
            portion_key = key if key is None or begin == 0 else f"{key}/{begin}"
            offsets |= self._write_portion(operation, rows.slice(begin, count), portion_key)
        return WriteToken(table=self.name, offsets=offsets)

    def _write_portion(self, operation: str, rows: pa.Table, key: str | None) -> dict[int, int]:
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, rows.schema) as writer:
            writer.write_table(rows)
        headers = {"Content-Type": ARROW}
        if key is not None:
            headers["Idempotency-Key"] = key
        body = sink.getvalue().to_pybytes()
        path = f"{self._path}/rows?operation={operation}"
        answer = self._client.exchange("POST", path, body, headers=headers, is_write=True)
        return msgspec.json.decode(answer, type=_Written).token.offsets


class _RemoteQuery:
    """Rows streamed from a node. Read by one thread, cancelled by any."""

    def __init__(
        self,
        connection: http.client.HTTPConnection,
        response: http.client.HTTPResponse,
        url: str,
    ) -> None:
        self._connection = connection
        self._url = url
        self._error: FrazilError | None = None
        self.is_cut = False
        try:
            self._reader = pa.ipc.open_stream(response)
        except (OSError, pa.ArrowException, http.client.HTTPException) as error:
            connection.close()
            raise self._failure(error) from None
        self.schema: pa.Schema = self._reader.schema

    def next(self) -> pa.RecordBatch | None:
        if self._error is not None:
            raise self._error
        try:
            batch, metadata = self._reader.read_next_batch_with_custom_metadata()
        except StopIteration:
            return None
        except (OSError, pa.ArrowException, http.client.HTTPException) as error:
            raise self._failure(error) from None
        if metadata is not None and ERROR_KEY in metadata:
            raise error_of(msgspec.json.decode(metadata[ERROR_KEY], type=ErrorReason), None)
        self.is_cut = metadata is not None and CUT_KEY in metadata
        return batch

    def cancel(self, error: FrazilError) -> None:
        self._error = error
        sock = self._connection.sock
        if sock is not None:
            sock.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self._connection.close()

    def _failure(self, error: Exception) -> FrazilError:
        return self._error or Unavailable(f"{self._url} did not send all rows: {error}")


def _with_query(path: str, parameters: Mapping[str, object]) -> str:
    values = {name: value for name, value in parameters.items() if value is not None}
    return f"{path}?{urlencode(values, doseq=True)}" if values else path


def error_of(failure: ErrorReason, retry_after_s: str | None) -> FrazilError:
    """Convert an error of the API to an exception."""
    kind = KINDS.get(failure.kind, Unavailable)
    if kind is Overloaded and retry_after_s is not None and retry_after_s.isdigit():
        return Overloaded(failure.message, retry_after_ms=int(retry_after_s) * 1000)
    return kind(failure.message)


def _tls(ca_file: str | None) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=ca_file)
    except OSError as error:
        raise Malformed(f"{ca_file} has no PEM certificates: {error}") from None
