"""OtlpClient: sends telemetry to a node over OTLP/HTTP, for `frazil demo` and `frazil import`.

A request is retried until it has a final response. Retries have the same bytes, so a node that has
stored them recognizes them: what counts as acknowledged is stored exactly once.
"""

from __future__ import annotations

import gzip
import http.client
import json
import ssl
from dataclasses import dataclass
from urllib.parse import urlsplit

from frazil.errors import Malformed, Unauthenticated, Unavailable, Unknown
from frazil.model import NS_PER_MS, Clock

PROTOBUF, JSON = "application/x-protobuf", "application/json"
RETRYABLE = frozenset({408, 429, 502, 503, 504})
"""Status codes to retry: those of the specification, and 408."""
RETRY_AFTER_S = 1.0
"""Default if the response has no Retry-After."""
RETRY_AFTER_S_MAX = 30.0
"""Longer Retry-After values are capped."""
GIVE_UP_S = 60.0
"""How long a node may be unreachable: enough for a restart."""
TIMEOUT_S = 30.0
"""Timeout of one request."""
GZIP_LEVEL = 1
"""Telemetry compresses to a tenth at any level; higher levels are slower."""
RESPONSE_BYTES_MAX = 64 * 1024
REASON_CHARS_MAX = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class OtlpTarget:
    """The endpoint and its credentials."""

    url: str
    token: str | None = None
    ca_file: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportResult:
    """The result of one request."""

    rejected_count: int = 0
    """Records rejected by the node."""
    refused: str | None = None
    """Why the node rejected the whole request for good."""
    is_too_large: bool = False
    """Whether a smaller request might be accepted."""


class OtlpClient:
    """One connection to a node, opened on first use. Owned by one thread."""

    def __init__(
        self,
        target: OtlpTarget,
        *,
        clock: Clock,
        give_up_s: float = GIVE_UP_S,
        is_known: bool = False,
    ) -> None:
        """`is_known`: the node was reachable before, so wait for it if it is not now."""
        self._target = target
        self._clock = clock
        self._give_up_s = give_up_s
        self._url = urlsplit(target.url)
        if self._url.scheme not in ("http", "https") or not self._url.hostname:
            raise Malformed(f"{target.url!r} is not a URL; it must be like http://127.0.0.1:4318")
        self._headers = {"Content-Encoding": "gzip"}
        if target.token is not None:
            self._headers["Authorization"] = f"Bearer {target.token}"
        self._connection: http.client.HTTPConnection | None = None
        self._was_reached = is_known
        self.retry_count = 0

    def send(self, signal: str, body: bytes, content_type: str = PROTOBUF) -> ExportResult:
        """Send one request; retry if the node asks for it or is unreachable for a while.

        Raises Unavailable if the node never responded or stays away, Unauthenticated if it rejects
        the token, Unknown if it is not an OTLP receiver. Other requests would fail as well.
        """
        compressed = gzip.compress(body, GZIP_LEVEL, mtime=0)
        start_ns = self._clock.monotonic_ns()
        while True:
            wait_s = RETRY_AFTER_S
            was_open = self._connection is not None
            try:
                status, headers, content = self._post(f"/v1/{signal}", compressed, content_type)
                self._was_reached = True
            except ssl.SSLError as error:
                raise Unavailable(self._tls_message(error)) from None
            except (OSError, http.client.HTTPException) as error:
                self.close()
                reason = str(error) or type(error).__name__
                if not self._was_reached:
                    raise Unavailable(self._unreachable_message(reason)) from None
                if was_open:
                    # The node may have closed an idle connection: retry at once on a new one.
                    wait_s = 0.0
            else:
                if status not in RETRYABLE:
                    return self._result_of(signal, status, content, content_type)
                reason = f"HTTP {status}: {_message_of(content, content_type)}"
                wait_s = _seconds_of(headers.get("Retry-After"))
            waited_s = (self._clock.monotonic_ns() - start_ns) / (1000 * NS_PER_MS)
            if waited_s + wait_s > self._give_up_s:
                raise Unavailable(
                    f"{self._target.url} accepted no request for {waited_s:.0f} s ({reason}); "
                    "see `frazil status` and the log of the node"
                )
            self.retry_count += 1
            self._clock.sleep(wait_s)

    def _post(
        self, path: str, body: bytes, content_type: str
    ) -> tuple[int, http.client.HTTPMessage, bytes]:
        if self._connection is None:
            self._connection = self._connect()
        headers = {**self._headers, "Content-Type": content_type}
        self._connection.request("POST", self._url.path.rstrip("/") + path, body, headers)
        response = self._connection.getresponse()
        content = response.read(RESPONSE_BYTES_MAX)
        if not response.isclosed() or response.will_close:
            self.close()
        return response.status, response.headers, content

    def _connect(self) -> http.client.HTTPConnection:
        host, port = self._url.hostname or "", self._url.port
        if self._url.scheme == "http":
            return http.client.HTTPConnection(host, port, timeout=TIMEOUT_S)
        try:
            context = ssl.create_default_context(cafile=self._target.ca_file)
        except OSError as error:
            raise Malformed(f"cannot read --ca-file {self._target.ca_file}: {error}") from None
        return http.client.HTTPSConnection(host, port, timeout=TIMEOUT_S, context=context)

    def _result_of(
        self, signal: str, status: int, content: bytes, content_type: str
    ) -> ExportResult:
        if status == http.HTTPStatus.OK:
            return ExportResult(rejected_count=self._rejected_count(signal, content, content_type))
        message = _message_of(content, content_type)
        if status in (http.HTTPStatus.NOT_FOUND, http.HTTPStatus.METHOD_NOT_ALLOWED):
            raise Unknown(self._not_otlp_message())
        if status in (http.HTTPStatus.UNAUTHORIZED, http.HTTPStatus.FORBIDDEN):
            raise Unauthenticated(
                f"{self._target.url} rejected the token ({message}); "
                "set it with --token or --token-file"
            )
        is_too_large = status == http.HTTPStatus.REQUEST_ENTITY_TOO_LARGE
        return ExportResult(refused=f"HTTP {status}: {message}", is_too_large=is_too_large)

    def _rejected_count(self, signal: str, content: bytes, content_type: str) -> int:
        from google.protobuf.message import DecodeError

        try:
            return _rejected_count(signal, content, content_type)
        except (ValueError, TypeError, AttributeError, DecodeError):
            raise Unknown(self._not_otlp_message()) from None

    def _not_otlp_message(self) -> str:
        return (
            f"{self._target.url} responds, but not with OTLP/HTTP; is this the right port? "
            "The default of a node is 4318"
        )

    def _unreachable_message(self, reason: str) -> str:
        return (
            f"cannot reach {self._target.url} ({reason}); start a node with `frazil up`, "
            "or name another with --endpoint (OTLP/HTTP, default port 4318)"
        )

    def _tls_message(self, error: ssl.SSLError) -> str:
        return (
            f"no TLS connection to {self._target.url} ({error.reason or error}); "
            "trust its authority with --ca-file, or use http:// for a node without TLS"
        )

    def close(self) -> None:
        """Close the connection. The next request opens a new one."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def _seconds_of(retry_after: str | None) -> float:
    """Return the seconds of a Retry-After header, capped."""
    try:
        seconds = RETRY_AFTER_S if retry_after is None else float(retry_after)
    except ValueError:
        seconds = RETRY_AFTER_S
    return min(max(seconds, 0.0), RETRY_AFTER_S_MAX)


def _rejected_count(signal: str, content: bytes, content_type: str) -> int:
    if not content:
        return 0
    field = {"traces": "Spans", "logs": "LogRecords", "metrics": "DataPoints"}[signal]
    if content_type == JSON:
        partial = json.loads(content).get("partialSuccess", {})
        return int(partial.get(f"rejected{field}", 0))
    # The three responses have the same fields with the same numbers.
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

    return ExportTraceServiceResponse.FromString(content).partial_success.rejected_spans


def _message_of(content: bytes, content_type: str) -> str:
    """Return the message of a `google.rpc.Status`, or the body as text."""
    from google.protobuf.message import DecodeError
    from google.rpc.status_pb2 import Status

    try:
        if content_type == JSON:
            message = json.loads(content)["message"]
        else:
            message = Status.FromString(content).message
    except (ValueError, LookupError, TypeError, DecodeError):
        message = content.decode(errors="replace")
    return str(message)[:REASON_CHARS_MAX] or "no message"
