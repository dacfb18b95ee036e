"""BatchBuilder: collects rows of one signal, by pod, into export requests."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from frazil.demo import protobuf
from frazil.demo.services import Pod
from frazil.demo.telemetry.request_trace import EmittedRow

BYTES_MAX = 1 << 20
"""About the size of one request: efficient, and within the limits of any node."""
SCHEMA_URL = protobuf.text(3, "https://opentelemetry.io/schemas/1.37.0")


@dataclass(frozen=True, slots=True, kw_only=True)
class Export:
    """One OTLP request."""

    signal: str
    body: bytes
    record_count: int


class BatchBuilder:
    """Rows of one signal, not sent yet. Owned by Traffic."""

    def __init__(self, signal: str) -> None:
        self._signal = signal
        self._rows: dict[Pod, list[bytes]] = {}
        self._bytes = 0
        self._count = 0

    def put(self, rows: Iterable[EmittedRow]) -> None:
        for pod, content in rows:
            self.put_one(pod, content, 1)

    def put_one(self, pod: Pod, content: bytes, count: int) -> None:
        contents = self._rows.get(pod)
        if contents is None:
            contents = self._rows[pod] = []
        contents.append(content)
        self._bytes += len(content)
        self._count += count

    def take(self, *, at_least: int = 1) -> Iterator[Export]:
        """Yield a request of all rows if they have `at_least` bytes."""
        if self._bytes < at_least:
            return
        body = []
        for pod, rows in self._rows.items():
            scope = protobuf.field(2, pod.scope + b"".join(rows))
            body.append(protobuf.field(1, pod.resource + scope + SCHEMA_URL))
        export = Export(signal=self._signal, body=b"".join(body), record_count=self._count)
        self._rows, self._bytes, self._count = {}, 0, 0
        yield export
