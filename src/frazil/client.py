"""Client of a running node, returned by `frazil.connect(url)`. It has the methods and results of
`frazil.open(path)`, except readers that follow a table."""

from __future__ import annotations

import http.client
import socket
import ssl
from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import quote, urlencode, urlsplit

import msgspec
import pyarrow as pa

if TYPE_CHECKING:
    from frazil.lake import Appended, Maintained
    from frazil.removal import RemovalPreview, RemovalReport, RuleStatus
from frazil import errors
from frazil.errors import FrazilError, Malformed, Overloaded, Unavailable
from frazil.results import (
    ARROW,
    CUT_KEY,
    ERROR_KEY,
    ErrorAnswer,
    ErrorReason,
    Limits,
    Parameters,
    Result,
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

KINDS: dict[str, type[FrazilError]] = {
    "".join(f"_{c.lower()}" if c.isupper() else c for c in name).lstrip("_"): kind
    for name, kind in vars(errors).items()
    if isinstance(kind, type) and issubclass(kind, FrazilError) and kind is not errors.Corrupt
}
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
    ) -> Result:
        """Run one query on the node; rows are streamed while they are read. `parameters` are the
        values of `$1`, `$2` (a list) or of `$name` (a dict)."""
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
        connection, response = self._request(method, path, body, "application/json")
        try:
            return msgspec.json.decode(response.read())
        except (OSError, http.client.HTTPException) as error:
            raise self._unreachable(error) from None
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
    ) -> tuple[http.client.HTTPConnection, http.client.HTTPResponse]:
        """Send a request and wait for the response headers. Raises on any status but 200."""
        connection = self._connection()
        headers = {**self._headers, "Accept": accept, **more_headers}
        encoded: Any = None
        if "Content-Type" in headers:
            encoded = body  # bytes as they come
        elif body is not None:
            encoded = msgspec.json.encode(body)
            headers["Content-Type"] = "application/json"
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
            raise self._unreachable(error) from None
        connection.close()
        raise self._error_of(response, error_body)

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
