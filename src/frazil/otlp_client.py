"""OtlpClient: OTLP/HTTP out, for the verbs that send telemetry to a node.

A request is sent until it is answered for good. The same bytes are sent each time, so a node that
had stored them already recognises them: what is counted as acknowledged is stored, once.
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
"""Answers that mean: again, later. The specification has all but the first; ours has that too."""
RETRY_AFTER_S = 1.0
"""Where the answer does not say."""
RETRY_AFTER_S_MAX = 30.0
"""Nobody is believed who wants to be left alone for longer."""
GIVE_UP_S = 60.0
"""How long a node may be away: it can be restarted in that time."""
TIMEOUT_S = 30.0
"""For one answer."""
GZIP_LEVEL = 1
"""Telemetry shrinks to a tenth on any level, and the others are slower."""
ANSWER_BYTES_MAX = 64 * 1024
REASON_CHARS_MAX = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class OtlpTarget:
    """Where telemetry goes, and what opens the door there."""

    url: str
    token: str | None = None
    ca_file: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportResult:
    """What became of one request."""

    rejected_count: int = 0
    """Records of it that the node did not take."""
    refused: str | None = None
    """Why the node took none of it, and never will."""
    is_too_large: bool = False
    """Would it take a part of it?"""


class OtlpClient:
    """One connection to a node, opened when it is needed. Owned by one thread."""

    def __init__(
        self,
        target: OtlpTarget,
        *,
        clock: Clock,
        give_up_s: float = GIVE_UP_S,
        is_known: bool = False,
    ) -> None:
        """A node that `is_known` was there a moment ago: if it is not, it is waited for."""
        self._target = target
        self._clock = clock
        self._give_up_s = give_up_s
        self._url = urlsplit(target.url)
        if self._url.scheme not in ("http", "https") or not self._url.hostname:
            raise Malformed(f"{target.url!r} is no address; it looks like http://127.0.0.1:4318")
        self._headers = {"Content-Encoding": "gzip"}
        if target.token is not None:
            self._headers["Authorization"] = f"Bearer {target.token}"
        self._connection: http.client.HTTPConnection | None = None
        self._was_there = is_known
        self.retry_count = 0

    def send(self, signal: str, body: bytes, content_type: str = PROTOBUF) -> ExportResult:
        """Send one request, again if the node asks for that or is away for a while.

        `Unavailable` when it was never there, or stays away; `Unauthenticated` when it lets nobody
        in without a token, or not with this one; `Unknown` when it is no receiver of OTLP. All of
        them mean that other requests will fail as well.
        """
        packed = gzip.compress(body, GZIP_LEVEL, mtime=0)
        begun_ns = self._clock.monotonic_ns()
        while True:
            wait_s = RETRY_AFTER_S
            was_open = self._connection is not None
            try:
                status, headers, found = self._post(f"/v1/{signal}", packed, content_type)
                self._was_there = True
            except ssl.SSLError as error:
                raise Unavailable(self._about_tls(error)) from None
            except (OSError, http.client.HTTPException) as error:
                self.close()
                reason = str(error) or type(error).__name__
                if not self._was_there:
                    raise Unavailable(self._about_absence(reason)) from None
                if was_open:
                    # The node may end a connection that was idle: a new one is worth a try.
                    wait_s = 0.0
            else:
                if status not in RETRYABLE:
                    return self._judge(signal, status, found, content_type)
                reason = f"HTTP {status}: {_message_of(found, content_type)}"
                wait_s = _seconds_of(headers.get("Retry-After"))
            waited_s = (self._clock.monotonic_ns() - begun_ns) / (1000 * NS_PER_MS)
            if waited_s + wait_s > self._give_up_s:
                raise Unavailable(
                    f"{self._target.url} has not taken a request for {waited_s:.0f} s ({reason}); "
                    "`frazil status` and the node's own messages say why"
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
        answer = self._connection.getresponse()
        found = answer.read(ANSWER_BYTES_MAX)
        if not answer.isclosed() or answer.will_close:
            self.close()
        return answer.status, answer.headers, found

    def _connect(self) -> http.client.HTTPConnection:
        host, port = self._url.hostname or "", self._url.port
        if self._url.scheme == "http":
            return http.client.HTTPConnection(host, port, timeout=TIMEOUT_S)
        try:
            context = ssl.create_default_context(cafile=self._target.ca_file)
        except OSError as error:
            raise Malformed(f"cannot read --ca-file {self._target.ca_file}: {error}") from None
        return http.client.HTTPSConnection(host, port, timeout=TIMEOUT_S, context=context)

    def _judge(self, signal: str, status: int, found: bytes, content_type: str) -> ExportResult:
        if status == http.HTTPStatus.OK:
            return ExportResult(rejected_count=self._rejected_count(signal, found, content_type))
        message = _message_of(found, content_type)
        if status in (http.HTTPStatus.NOT_FOUND, http.HTTPStatus.METHOD_NOT_ALLOWED):
            raise Unknown(self._about_strangers())
        if status in (http.HTTPStatus.UNAUTHORIZED, http.HTTPStatus.FORBIDDEN):
            raise Unauthenticated(
                f"{self._target.url} wants a token that it knows ({message}); "
                "give it with --token or --token-file"
            )
        is_too_large = status == http.HTTPStatus.REQUEST_ENTITY_TOO_LARGE
        return ExportResult(refused=f"HTTP {status}: {message}", is_too_large=is_too_large)

    def _rejected_count(self, signal: str, found: bytes, content_type: str) -> int:
        from google.protobuf.message import DecodeError

        try:
            return _rejected_count(signal, found, content_type)
        except (ValueError, TypeError, AttributeError, DecodeError):
            raise Unknown(self._about_strangers()) from None

    def _about_strangers(self) -> str:
        return (
            f"{self._target.url} answers, but not as OTLP/HTTP does; is this the right port? "
            "Of a node it is usually 4318"
        )

    def _about_absence(self, reason: str) -> str:
        return (
            f"nobody answers at {self._target.url} ({reason}); start a node with `frazil up`, "
            "or name another one with --endpoint (OTLP/HTTP, usually port 4318)"
        )

    def _about_tls(self, error: ssl.SSLError) -> str:
        return (
            f"no safe connection to {self._target.url} ({error.reason or error}); "
            "--ca-file names whom to trust, and http:// is for nodes without TLS"
        )

    def close(self) -> None:
        """Close the connection. The next request opens another one."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def _seconds_of(retry_after: str | None) -> float:
    """What `Retry-After` says, if it is a number of seconds."""
    try:
        asked_s = RETRY_AFTER_S if retry_after is None else float(retry_after)
    except ValueError:
        asked_s = RETRY_AFTER_S
    return min(max(asked_s, 0.0), RETRY_AFTER_S_MAX)


def _rejected_count(signal: str, found: bytes, content_type: str) -> int:
    if not found:
        return 0
    field = {"traces": "Spans", "logs": "LogRecords", "metrics": "DataPoints"}[signal]
    if content_type == JSON:
        partial = json.loads(found).get("partialSuccess", {})
        return int(partial.get(f"rejected{field}", 0))
    # The three answers have the same fields, with the same numbers.
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

    return ExportTraceServiceResponse.FromString(found).partial_success.rejected_spans


def _message_of(found: bytes, content_type: str) -> str:
    """What a `google.rpc.Status` says, or the text that came instead."""
    from google.protobuf.message import DecodeError
    from google.rpc.status_pb2 import Status

    try:
        if content_type == JSON:
            message = json.loads(found)["message"]
        else:
            message = Status.FromString(found).message
    except (ValueError, LookupError, TypeError, DecodeError):
        message = found.decode(errors="replace")
    return str(message)[:REASON_CHARS_MAX] or "no reason given"
