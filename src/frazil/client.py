"""Client: a node asked from outside. `frazil.connect(url)` gives one; it is asked as what
`frazil.open(path)` gives, with the same results. Readers that follow a table need the folder."""

from __future__ import annotations

import http.client
import socket
import ssl
from collections.abc import Iterator, Mapping
from types import MappingProxyType, TracebackType
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import urlencode, urlsplit

import msgspec
import pyarrow as pa

if TYPE_CHECKING:
    from frazil.lake import Appended, Maintained
from frazil import errors
from frazil.errors import FrazilError, Malformed, Overloaded, Unavailable
from frazil.results import (
    ARROW,
    CUT_KEY,
    ERROR_KEY,
    ErrorAnswer,
    ErrorReason,
    Limits,
    Result,
    result_of_run,
)

CONNECT_TIMEOUT_S = 10.0
ANSWER_TIMEOUT_S = 600.0
"""Without a single byte for so long nobody is there any more. A first flush starts a JVM."""
ERROR_BYTES_MAX = 1024 * 1024
LINE_BYTES_MAX = 16 * 1024 * 1024
NEVER = 2**62
"""Rows: the node has the limit."""

KINDS: dict[str, type[FrazilError]] = {
    "".join(f"_{c.lower()}" if c.isupper() else c for c in name).lstrip("_"): kind
    for name, kind in vars(errors).items()
    if isinstance(kind, type) and issubclass(kind, FrazilError) and kind is not errors.Corrupt
}
"""What the API calls an error to what it is here."""


class Client:
    """Any thread may ask: every question has a connection of its own."""

    def __init__(self, url: str, *, token: str | None, ca_file: str | None) -> None:
        parts = urlsplit(url if "://" in url else f"http://{url}")
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise Malformed(f"{url!r} is no address of a node; write http://127.0.0.1:4320")
        self.url = f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}"
        self._host = parts.hostname
        self._port = parts.port
        self._prefix = parts.path.rstrip("/")
        self._tls = _tls(ca_file) if parts.scheme == "https" else None
        self._headers = {} if token is None else {"Authorization": f"Bearer {token}"}

    def sql(
        self, text: str, *, limits: Limits | None = None, engine: Literal["spark"] | None = None
    ) -> Result:
        """Run one query on the node; its rows come while they are read."""
        limits = limits or Limits()
        asked = {
            "sql": text,
            "format": "arrow",
            "engine": engine,
            "details": True,
            "timeout_ms": limits.timeout_ms,
            "rows_max": limits.rows_max,
            "memory_bytes_max": limits.memory_bytes_max,
        }
        connection, response = self._request("POST", "/api/v1/sql", asked, ARROW)
        run = _Coming(connection, response, self.url)
        return result_of_run(run, NEVER)

    def ask(self, text: str) -> pa.Table:
        """All rows of one query at once. What the questions in `frazil.query` are asked with."""
        return self.sql(text).arrow()

    def flush(self) -> list[Appended]:
        """Bring all that is acknowledged now into the tables. Returns when it is there."""
        from frazil.lake import Appended

        answer = self.call("POST", "/api/v1/flush")
        return msgspec.convert(answer["commits"], list[Appended])

    def maintain(self) -> list[Maintained]:
        """Join small files, let old snapshots go, remove what nobody names."""
        from frazil.lake import Maintained

        answer = self.call("POST", "/api/v1/maintain")
        return msgspec.convert(answer["tables"], list[Maintained])

    def get(self, path: str, parameters: Mapping[str, object] | None = None) -> Any:
        """What the API has at a path, as plain values. Lists are given by repetition."""
        given = {name: value for name, value in (parameters or {}).items() if value is not None}
        query = urlencode(given, doseq=True)
        return self.call("GET", f"{path}?{query}" if query else path)

    def call(self, method: str, path: str, body: object = None) -> Any:
        """One answer in JSON, as plain values."""
        connection, response = self._request(method, path, body, "application/json")
        try:
            return msgspec.json.decode(response.read())
        except (OSError, http.client.HTTPException) as error:
            raise self._lost(error) from None
        finally:
            connection.close()

    def lines(
        self,
        path: str,
        parameters: Mapping[str, object],
        *,
        last_event_id: str | None = None,
    ) -> Iterator[str]:
        """A stream of text, line by line, as long as somebody reads it and the node sends it. With
        the id of an event it goes on behind that one."""
        given = {name: value for name, value in parameters.items() if value is not None}
        target = f"{path}?{urlencode(given, doseq=True)}"
        more = {} if last_event_id is None else {"Last-Event-ID": last_event_id}
        connection, response = self._request("GET", target, None, "text/event-stream", more)
        try:
            while line := response.readline(LINE_BYTES_MAX):
                yield line.decode().rstrip("\r\n")
        except (OSError, http.client.HTTPException) as error:
            raise self._lost(error) from None
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
        """Ask, and wait for the head of the answer. What is no success is raised."""
        connection = self._connection()
        headers = {**self._headers, "Accept": accept, **more_headers}
        encoded = None
        if body is not None:
            encoded = msgspec.json.encode(body)
            headers["Content-Type"] = "application/json"
        try:
            connection.request(method, self._prefix + path, encoded, headers)
            assert connection.sock is not None
            connection.sock.settimeout(ANSWER_TIMEOUT_S)
            response = connection.getresponse()
            if response.status == http.client.OK:
                return connection, response
            said = response.read(ERROR_BYTES_MAX)
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            raise self._lost(error) from None
        connection.close()
        raise self._refused(response, said)

    def _connection(self) -> http.client.HTTPConnection:
        if self._tls is None:
            return http.client.HTTPConnection(self._host, self._port, timeout=CONNECT_TIMEOUT_S)
        return http.client.HTTPSConnection(
            self._host, self._port, timeout=CONNECT_TIMEOUT_S, context=self._tls
        )

    def _refused(self, response: http.client.HTTPResponse, said: bytes) -> FrazilError:
        try:
            failure = msgspec.json.decode(said, type=ErrorAnswer).error
        except msgspec.MsgspecError:
            return Unavailable(
                f"{self.url} answers {response.status} {response.reason}, and not as a node of "
                "Frazil does; is this the port of its API?"
            )
        return error_of(failure, response.getheader("Retry-After"))

    def _lost(self, error: Exception) -> Unavailable:
        if isinstance(error, ConnectionRefusedError):
            return Unavailable(
                f"no node answers at {self.url}; start one with `frazil up`, name another with "
                "--url, or ask a folder that no node uses with --data"
            )
        reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
        return Unavailable(f"{self.url} cannot be asked: {reason}")

    def close(self) -> None:
        """Nothing is kept open between two questions."""

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


class _Coming:
    """Rows on their way from a node. Read by one thread, stopped by any."""

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
            raise self._named(error) from None
        self.schema: pa.Schema = self._reader.schema

    def next(self) -> pa.RecordBatch | None:
        if self._error is not None:
            raise self._error
        try:
            batch, metadata = self._reader.read_next_batch_with_custom_metadata()
        except StopIteration:
            return None
        except (OSError, pa.ArrowException, http.client.HTTPException) as error:
            raise self._named(error) from None
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

    def _named(self, error: Exception) -> FrazilError:
        return self._error or Unavailable(
            f"{self._url} did not send all rows, so there is no result: {error}"
        )


def error_of(failure: ErrorReason, retry_after_s: str | None) -> FrazilError:
    """The error that a node has told of."""
    kind = KINDS.get(failure.kind, Unavailable)
    if kind is Overloaded and retry_after_s is not None and retry_after_s.isdigit():
        return Overloaded(failure.message, retry_after_ms=int(retry_after_s) * 1000)
    return kind(failure.message)


def _tls(ca_file: str | None) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=ca_file)
    except OSError as error:
        raise Malformed(f"{ca_file} holds no certificates in PEM: {error}") from None
