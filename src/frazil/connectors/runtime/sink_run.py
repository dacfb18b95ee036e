"""SinkRun: reads a topic for the process of a sink, in order, and keeps its progress.

    Reader ─> DeliverBatches ─> BatchesDelivered ─> dead letters, durable ─> progress, durable

Progress is saved after the effect, a few times a second: a sink gets each record at least once, and
never one before an earlier one of its partition.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field

from frazil.connectors.messages import BatchesDelivered, DeliverBatches, RefusedRecord
from frazil.connectors.own_headers import without_own_headers
from frazil.connectors.runtime.connector_log import ConnectorLog
from frazil.connectors.step_names import subscriber_name
from frazil.disk import Disk
from frazil.errors import Malformed, OutOfRange, Overloaded, Unknown
from frazil.log import (
    DEAD_LETTERS,
    DIGEST_BYTES,
    Append,
    AppendResult,
    Reader,
    Record,
    append_of_records,
    load_progress,
    read_records,
)
from frazil.metrics import Counter
from frazil.model import NS_PER_MS, Clock, MiB

DELIVERY_BYTES = MiB
"""Of one `DeliverBatches`, about."""
AHEAD_MAX = 2
"""Deliveries that the process has at a time: the next one is there when it has done one."""
SAVE_NS = 200 * NS_PER_MS
RETRY_NS = 500 * NS_PER_MS
"""Pause before dead letters are appended again."""
REASON_BYTES_MAX = 4096

DROPPED = Counter(
    "frazil.connectors.dropped.offsets", "Offsets that a full log dropped before a sink read them."
)


@dataclass(slots=True)
class _Follower:
    """State of a sink in one partition."""

    index: int
    reader: Reader
    sent: int
    """Everything below was sent to the process."""
    delivered: int
    """Everything below is safe on the other side, or among the dead letters."""
    saved: int
    deliveries: dict[int, tuple[int, list[bytes]]] = field(default_factory=dict)
    """End of a delivery -> where it begins, and its batches."""


@dataclass(slots=True)
class _Letters:
    """Dead letters on their way, and the end of the delivery that they belong to."""

    follower: _Follower
    end: int
    waiting: list[tuple[Append, Future[AppendResult]]]


class SinkRun:
    """One life of a sink. Owned by the thread of its supervisor."""

    def __init__(
        self,
        name: str,
        topic: str,
        log: ConnectorLog,
        disk: Disk,
        clock: Clock,
        *,
        wake: Callable[[], None],
        on_delivered: Callable[[int, int, int], None],
    ) -> None:
        """Register the subscriber, or resume. `Unknown` if there is no such topic. `wake` is called
        in other threads when `step` has something to do; `on_delivered` with the records, bytes and
        refused records of a delivery."""
        self._name = name
        self._topic = topic
        self._log = log
        self._clock = clock
        self._wake = wake
        self._on_delivered = on_delivered
        self._subscriber = subscriber_name(name)
        self._topic_id = log.topic(topic).topic_id
        self._keeper = log.keep_progress(self._subscriber, topic)
        watermarks = [each.watermark for each in load_progress(disk, self._subscriber).partitions]
        self._followers: list[_Follower] = []
        for index, watermark in enumerate(watermarks):
            self._follow(index, watermark)
        self._follow_new()
        self._turn = 0
        self._ahead = 0
        self._letters: list[_Letters] = []
        self._retry_ns = 0
        self._saved_ns = 0

    def _follow(self, index: int, offset: int) -> None:
        reader = Reader(self._log.partition(self._topic, index), offset)
        self._followers.append(_Follower(index, reader, offset, offset, offset))

    def _follow_new(self) -> None:
        """Follow partitions that the topic has got since, from their start."""
        for index in range(len(self._followers), len(self._log.topic(self._topic).partitions)):
            self._follow(index, 0)

    @property
    def lag_offsets(self) -> int:
        return sum(
            max(0, each.reader.partition.view.last_stable_offset - each.delivered)
            for each in self._followers
        )

    def wait(self, timeout_s: float) -> bool:
        """Wait until there is more to read; returns whether there is."""
        return self._log.wait_for_any(
            [(each.reader.partition, each.reader.offset) for each in self._followers], timeout_s
        )

    @property
    def is_idle(self) -> bool:
        """Whether everything that was sent is delivered, and saved."""
        return self._ahead == 0 and not self._letters

    def next(self) -> DeliverBatches | None:
        """Return what to send next; None if there is nothing, or enough on its way."""
        if self._ahead >= AHEAD_MAX or self._letters:
            return None
        if self._log.topic(self._topic).topic_id != self._topic_id:
            raise Unknown(f"topic {self._topic} was deleted, and created again")
        self._follow_new()
        for turn in range(len(self._followers)):
            follower = self._followers[(self._turn + turn) % len(self._followers)]
            delivery = self._read(follower)
            if delivery is not None:
                self._turn += turn + 1
                self._ahead += 1
                return delivery
        return None

    def _read(self, follower: _Follower) -> DeliverBatches | None:
        reader = follower.reader
        try:
            batches = reader.read(DELIVERY_BYTES)
        except OutOfRange:
            start = reader.partition.current_view().start_offset
            DROPPED.add(max(0, start - follower.sent), sink=self._name)
            reader.close()
            follower.reader = Reader(reader.partition, start)
            follower.sent = start
            return None
        begin, end = follower.sent, reader.offset
        if end <= begin:
            return None
        follower.sent = end
        payloads = [batch.payload for batch in batches if not batch.header.is_control]
        follower.deliveries[end] = begin, payloads
        return DeliverBatches(follower.index, begin, end, payloads)

    def take(self, message: BatchesDelivered) -> None:
        """Note a delivery. Records that were refused go to the dead letters first."""
        follower = self._followers[message.partition]
        found = follower.deliveries.pop(message.end, None)
        if found is None or (follower.deliveries and min(follower.deliveries) < message.end):
            raise Malformed("the process has delivered something else than what it was sent")
        begin, payloads = found
        self._ahead -= 1
        letters = _letters(self._subscriber, self._topic, begin, payloads, message.refused)
        self._on_delivered(message.count, sum(map(len, payloads)), len(letters))
        waiting = [(letter, _unsent()) for letter in letters]
        self._letters.append(_Letters(follower, message.end, waiting))
        self.step()

    def step(self) -> None:
        """Append dead letters, and save progress if it is time."""
        now_ns = self._clock.monotonic_ns()
        if now_ns >= self._retry_ns:
            self._append_letters(now_ns)
        while self._letters and not self._letters[0].waiting:
            done = self._letters.pop(0)
            done.follower.delivered = max(done.follower.delivered, done.end)
        if now_ns - self._saved_ns >= SAVE_NS:
            self.save()

    def _append_letters(self, now_ns: int) -> None:
        for letters in self._letters:
            left = []
            for append, future in letters.waiting:
                if future.done() and future.exception() is None:
                    continue
                left.append((append, self._append(append) if future.done() else future))
            letters.waiting = left

    def _append(self, letter: Append) -> Future[AppendResult]:
        try:
            future = self._log.append(DEAD_LETTERS, letter)
        except Overloaded:
            self._retry_ns = self._clock.monotonic_ns() + RETRY_NS
            return _unsent()
        future.add_done_callback(lambda _: self._wake())
        return future

    def save(self) -> None:
        """Make progress durable if it changed."""
        self._saved_ns = self._clock.monotonic_ns()
        changed = [each for each in self._followers if each.delivered > each.saved]
        for follower in changed:
            self._keeper.finish(follower.index, follower.saved, follower.delivered)
        if changed:
            self._keeper.step()
        for follower in changed:
            follower.saved = follower.delivered

    def close(self) -> None:
        for follower in self._followers:
            follower.reader.close()


def _unsent() -> Future[AppendResult]:
    future: Future[AppendResult] = Future()
    future.set_exception(Overloaded("not sent yet"))
    return future


def _letters(
    subscriber: str, topic: str, begin: int, payloads: list[bytes], refused: list[RefusedRecord]
) -> list[Append]:
    """Return the dead letters of refused records."""
    if not refused:
        return []
    reasons = {each.offset: each for each in refused}
    letters = []
    for payload in payloads:
        for record in read_records(payload):
            if record.offset >= begin and record.offset in reasons:
                letters.append(_letter(subscriber, topic, record, reasons[record.offset]))
    return letters


def _letter(subscriber: str, topic: str, record: Record, refused: RefusedRecord) -> Append:
    """Return the dead letter of a record: its key, value and headers, its origin and the reason.
    The digest is that of the origin: a crash before the progress is saved does not double it."""
    headers = (
        *without_own_headers(record).headers,
        ("topic", topic.encode()),
        ("partition", str(refused.partition).encode()),
        ("offset", str(record.offset).encode()),
        ("subscriber", subscriber.encode()),
        ("reason", refused.reason.encode(errors="backslashreplace")[:REASON_BYTES_MAX]),
    )
    letter = Record(
        offset=0,
        timestamp_ms=record.timestamp_ms,
        key=record.key,
        value=record.value,
        headers=headers,
    )
    origin = f"{subscriber}\n{topic}\n{refused.partition}\n{record.offset}".encode()
    digest = hashlib.blake2b(origin, digest_size=DIGEST_BYTES).digest()
    return append_of_records([letter], digest=digest)
