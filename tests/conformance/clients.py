"""Sends one request over either transport."""

from __future__ import annotations

import http.client
from dataclasses import dataclass, field
from typing import Any

import grpc
from google.protobuf.json_format import Parse
from google.rpc.error_details_pb2 import RetryInfo
from google.rpc.status_pb2 import Status

from frazil.ingest.status_codes import RESPONSES
from frazil.model import Signal

TIMEOUT_S = 60
DETAILS = "grpc-status-details-bin"
PROTOBUF = "application/x-protobuf"
JSON = "application/json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The response. Status 200 and code OK are success."""

    status: int
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    message: str = ""
    has_retry_hint: bool = False

    def response(self, signal: Signal) -> Any:
        """Parse the response message of OTLP, for success and partial success."""
        if self.headers.get("content-type") == JSON:
            return Parse(self.body, RESPONSES[signal]())
        return RESPONSES[signal].FromString(self.body)


def send_http(
    port: int,
    path: str,
    body: bytes | None,
    headers: dict[str, str],
    method: str = "POST",
) -> Answer:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=TIMEOUT_S)
    try:
        connection.request(method, path, body, headers)
        answer = connection.getresponse()
        content = answer.read()
    finally:
        connection.close()
    names = {name.lower(): value for name, value in answer.getheaders()}
    is_status = answer.status >= 400 and names.get("content-type") == PROTOBUF
    return Answer(
        status=answer.status,
        body=content,
        headers=names,
        message=Status.FromString(content).message if is_status else content.decode("latin-1"),
        has_retry_hint="retry-after" in names,
    )


def send_grpc(
    port: int,
    method: str,
    body: bytes,
    metadata: tuple[tuple[str, str], ...] = (),
    compression: grpc.Compression | None = None,
) -> Answer:
    options = [("grpc.max_send_message_length", -1)]
    with grpc.insecure_channel(f"127.0.0.1:{port}", options=options) as channel:
        try:
            content = channel.unary_unary(method)(
                body, timeout=TIMEOUT_S, metadata=metadata, compression=compression
            )
        except grpc.RpcError as error:
            return _refused(error)
    return Answer(status=grpc.StatusCode.OK.value[0], body=content)


def _refused(error: grpc.RpcError) -> Answer:
    status = Status()
    for name, value in error.trailing_metadata() or ():
        if name == DETAILS:
            status = Status.FromString(value)
            assert status.code == error.code().value[0]
            assert status.message == error.details()
    return Answer(
        status=error.code().value[0],
        message=error.details(),
        has_retry_hint=any(detail.Is(RetryInfo.DESCRIPTOR) for detail in status.details),
    )
