"""Subscribers: named readers with durable progress, independent of each other.

A subscriber claims batches and settles each claim: `ack`, `nack` (transient: retried after a
backoff, up to a limit of tries; permanent: sent to the dead letters at once) or `defer`. A claim
dropped without being settled is deferred. Claims may be settled in any order and from any thread;
`claim` and `step` belong to one thread. Progress is saved after the effect, never before it.
"""

from __future__ import annotations

import hashlib
import heapq
import logging
import threading
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Literal
from uuid import UUID

import msgspec

from frazil.disk import Disk, is_full, read_checkpoint, write_checkpoint
from frazil.errors import FrazilError, Malformed, OutOfRange
from frazil.log.append import Append, AppendResult, append_of_records
from frazil.log.dedup.digests import DIGEST_BYTES
from frazil.log.format.record import Record
from frazil.log.partition import Partition
from frazil.log.progress import Progress
from frazil.log.reader import Reader
from frazil.log.segment import StoredBatch
from frazil.log.topic import SUBSCRIBERS_FOLDER, Topic
from frazil.log.topics import DEAD_LETTERS
from frazil.metrics import Counter
from frazil.model import NS_PER_MS, Clock, Rand
from frazil.settings import TopicConfig

logger = logging.getLogger(__name__)

PROGRESS_SUFFIX = ".progress"
PROGRESS_KIND = b"SUBS"
PROGRESS_VERSION = 1
HINT = (
    "Restore the file from a copy, or remove it and subscribe again with an explicit start; "
    "a wrong start would skip or repeat data."
)
DEAD_LETTERS_CONFIG = TopicConfig(retention_ms=7 * 86_400_000)
"""One week to inspect them, unless the operator created the topic with other settings."""
REASON_BYTES_MAX = 4096
"""A reason may quote the batch, which the dead letter contains anyway."""

SETTLED = Counter("frazil.log.settled.batches", "Claims settled, by subscriber and outcome.")
DROPPED = Counter("frazil.log.dropped.offsets", "Offsets dropped before a subscriber read them.")
UNSAVED = Counter("frazil.log.progress.unsaved", "Progress not saved because the disk was full.")

Outcome = Literal["ack", "transient", "permanent", "defer"]


class SubscriberConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Limits of a subscriber."""

    in_flight_max: int = 1000
    tries_max: int = 10
    backoff_ms: int = 1000
    backoff_ms_max: int = 30_000

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            if getattr(self, name) < 1:
                raise Malformed(f"{name} is {getattr(self, name)}; it must be at least 1")


class SavedProgress(msgspec.Struct, kw_only=True, omit_defaults=True):
    """The body of a progress file."""

    topic: str
    partitions: list[Progress]
    topic_id: UUID | None = None
    """None if an earlier release wrote the file."""


class Claim:
    """One batch handed to a subscriber, to be settled once. Later calls are ignored."""

    def __init__(
        self,
        settle: Callable[[Claim, Outcome, str], None],
        partition: Partition,
        batch: StoredBatch,
        tries: int,
    ) -> None:
        self._settle = settle
        self._settled = threading.Lock()  # acquired by the first call, never released
        self.partition = partition
        self.batch = batch
        self.tries = tries
        """How often this batch has failed before."""

    def ack(self) -> None:
        """Finish the batch."""
        self._once("ack", "")

    def nack(self, reason: str, *, is_permanent: bool = False) -> None:
        """Report a failure: retry after a backoff, or send to the dead letters if permanent."""
        self._once("permanent" if is_permanent else "transient", reason)

    def defer(self) -> None:
        """Return the batch without counting a failure."""
        self._once("defer", "")

    def _once(self, outcome: Outcome, reason: str) -> None:
        if self._settled.acquire(blocking=False):
            self._settle(self, outcome, reason)

    def __enter__(self) -> Claim:
        return self

    def __exit__(self, *_: object) -> None:
        self.defer()

    def __del__(self) -> None:
        self.defer()


@dataclass(slots=True)
class _Follower:
    """State of a subscriber in one partition."""

    partition: Partition
    progress: Progress
    saved_watermark: int
    cursor: int
    claimed: set[int] = field(default_factory=set)
    """Base offsets of batches claimed, or on their way to the dead letters."""
    retries: list[tuple[int, int, int]] = field(default_factory=list)
    """A heap of (due, base, end): deferred, or failed and waiting for a retry."""


class Subscriber:
    """Owned by one thread, except that claims may be settled from any."""

    def __init__(
        self,
        name: str,
        topic: Topic,
        progress: Iterable[Progress],
        config: SubscriberConfig,
        *,
        disk: Disk,
        clock: Clock,
        rand: Rand,
        append_dead_letter: Callable[[Append], Future[AppendResult]],
    ) -> None:
        self.name = name
        self.topic = topic.name
        self.topic_id = topic.topic_id
        self.config = config
        self._disk = disk
        self._clock = clock
        self._rand = rand
        self._append_dead_letter = append_dead_letter
        self._followers = tuple(
            _Follower(partition, saved, saved.watermark, saved.watermark)
            for partition, saved in zip(topic.partitions, progress, strict=True)
        )
        """Replaced as a whole when the topic gets more partitions."""
        self._outcomes: deque[tuple[Claim, Outcome, str]] = deque()
        self._dead_letters: list[tuple[Future[AppendResult], Claim, str]] = []
        self._is_changed = False
        self._saving = threading.Lock()
        self._is_ended = False
        self._turn = 0

    def follow(self, partitions: Iterable[Partition]) -> None:
        """Follow new partitions from their start. Called on the writer thread."""
        added = (_Follower(partition, Progress(watermark=0), 0, 0) for partition in partitions)
        self._followers = (*self._followers, *added)

    def end(self) -> None:
        """Remove the progress of a subscriber whose topic was deleted, for good. Called on the
        writer thread."""
        with self._saving:
            self._is_ended = True
            remove_progress(self._disk, self.name)

    def saved_watermark(self, partition: int) -> int:
        """Return the watermark on disk. Retention calls this from any thread."""
        return self._followers[partition].saved_watermark

    def lag(self) -> int:
        """Return the unfinished offsets of all partitions."""
        return sum(
            f.partition.view.last_stable_offset - f.progress.watermark for f in self._followers
        )

    def finish(self, partition: int, begin: int, end: int) -> None:
        """Mark offsets as finished, for a subscriber that reads by itself instead of claiming."""
        self._finish(self._followers[partition], begin, end)

    def reopen(self, partition: int, begin: int, end: int) -> None:
        """Mark offsets as unfinished; from the next `save` on the log keeps them."""
        follower = self._followers[partition]
        follower.progress.reopen(begin, end)
        follower.saved_watermark = min(follower.saved_watermark, begin)
        self._is_changed = True

    def in_flight(self) -> int:
        return sum(len(f.claimed) + len(f.retries) for f in self._followers)

    def claim(self, count_max: int = 100) -> list[Claim]:
        """Return the next batches, due retries first; empty if there are none.

        At most `in_flight_max` are claimed at once: a subscriber that settles nothing gets nothing.
        """
        self._settle_outcomes()
        claims: list[Claim] = []
        followers = self._followers
        for turn in range(len(followers)):
            follower = followers[(self._turn + turn) % len(followers)]
            self._skip_dropped(follower)
            try:
                claims += self._claim_retries(follower, count_max - len(claims))
                room = min(count_max - len(claims), self.config.in_flight_max - self.in_flight())
                if room > 0:
                    claims += self._claim_fresh(follower, room)
            except OutOfRange:  # the log dropped these offsets meanwhile
                self._skip_dropped(follower)
        self._turn += 1
        return claims

    def step(self) -> int:
        """Apply settled claims and save progress if it changed. Returns the claims settled."""
        settled = self._settle_outcomes()
        for follower in self._followers:
            self._skip_dropped(follower)
        self.save()
        return settled

    def save(self) -> None:
        """Make progress durable if it changed. A full disk postpones it."""
        if not self._is_changed:
            return
        followers = self._followers
        watermarks = [f.progress.watermark for f in followers]
        try:
            with self._saving:
                if self._is_ended:
                    return
                progress = [f.progress for f in followers]
                save_progress(self._disk, self.name, self.topic, self.topic_id, progress)
        except OSError as error:
            if not is_full(error):
                raise
            UNSAVED.add(subscriber=self.name)
            logger.warning("disk full: progress not saved", extra={"subscriber": self.name})
            return
        for follower, watermark in zip(followers, watermarks, strict=True):
            follower.saved_watermark = watermark
        self._is_changed = False

    def _claim_retries(self, follower: _Follower, room: int) -> list[Claim]:
        claims: list[Claim] = []
        now = self._clock.monotonic_ns()
        while follower.retries and follower.retries[0][0] <= now and len(claims) < room:
            _, base, end = follower.retries[0]
            reader = Reader(follower.partition, base)
            try:
                batches = reader.read(1)
            finally:
                reader.close()
            heapq.heappop(follower.retries)  # only once it was read
            if batches and batches[0].base_offset == base:
                claims.append(self._claim_of(follower, batches[0]))
            else:  # removed by compaction
                self._finish(follower, base, end)
        return claims

    def _claim_fresh(self, follower: _Follower, room: int) -> list[Claim]:
        claims: list[Claim] = []
        reader = Reader(follower.partition, follower.cursor)
        try:
            while len(claims) < room and (batches := reader.read()):
                for batch in batches:
                    if len(claims) == room:
                        break
                    if batch.base_offset > follower.cursor:  # a gap left by compaction
                        follower.progress.finish(follower.cursor, batch.base_offset)
                        self._is_changed = True
                    follower.cursor = batch.end_offset
                    if not follower.progress.is_finished(batch.end_offset - 1):
                        claims.append(self._claim_of(follower, batch))
            if len(claims) < room and reader.offset > follower.cursor:  # a gap up to the end
                follower.progress.finish(follower.cursor, reader.offset)
                follower.cursor = reader.offset
                self._is_changed = True
        finally:
            reader.close()
        return claims

    def _claim_of(self, follower: _Follower, batch: StoredBatch) -> Claim:
        follower.claimed.add(batch.base_offset)
        tries = follower.progress.tries.get(batch.end_offset - 1, 0)
        return Claim(self._note, follower.partition, batch, tries)

    def _note(self, claim: Claim, outcome: Outcome, reason: str) -> None:
        self._outcomes.append((claim, outcome, reason))

    def _settle_outcomes(self) -> int:
        count = len(self._outcomes)
        for _ in range(count):
            claim, outcome, reason = self._outcomes.popleft()
            self._settle(claim, outcome, reason)
        letters, self._dead_letters = self._dead_letters, []
        for letter in letters:
            self._check_dead_letter(*letter)
        return count

    def _settle(self, claim: Claim, outcome: Outcome, reason: str) -> None:
        follower = self._followers[claim.partition.index]
        base, end = claim.batch.base_offset, claim.batch.end_offset
        # A batch is identified by its last offset: a subscriber may start in the middle of one.
        progress, last = follower.progress, end - 1
        SETTLED.add(subscriber=self.name, outcome=outcome)
        if progress.is_finished(last):
            return  # dropped from the log meanwhile
        if outcome == "ack":
            self._finish(follower, base, end)
            return
        due = self._clock.monotonic_ns()
        if outcome != "defer":
            tries = progress.tries[last] = progress.tries.get(last, 0) + 1
            self._is_changed = True
            if outcome == "permanent" or tries >= self.config.tries_max:
                self._send_dead_letter(claim, reason)
                return
            due += self._backoff_ms(tries) * NS_PER_MS
        follower.claimed.remove(base)
        heapq.heappush(follower.retries, (due, base, end))

    def _finish(self, follower: _Follower, base: int, end: int) -> None:
        follower.claimed.discard(base)
        follower.progress.finish(base, end)
        self._is_changed = True

    def _backoff_ms(self, tries: int) -> int:
        """Double with every try up to a limit, minus up to a quarter to spread retries."""
        full = min(self.config.backoff_ms << min(tries - 1, 30), self.config.backoff_ms_max)
        return full - self._rand.randrange(full // 4 + 1)

    def _send_dead_letter(self, claim: Claim, reason: str) -> None:
        """Send a batch to the dead letters. It stays claimed until that is durable."""
        if self.topic == DEAD_LETTERS:  # it is there already
            follower = self._followers[claim.partition.index]
            self._finish(follower, claim.batch.base_offset, claim.batch.end_offset)
            return
        letter = dead_letter(self.name, claim, reason, self._clock.wall_ms())
        try:
            self._dead_letters.append((self._append_dead_letter(letter), claim, reason))
        except FrazilError as error:
            failed: Future[AppendResult] = Future()
            failed.set_exception(error)
            self._dead_letters.append((failed, claim, reason))

    def _check_dead_letter(self, appended: Future[AppendResult], claim: Claim, reason: str) -> None:
        """Finish a claim whose dead letter is durable; send a refused one again."""
        if not appended.done():
            self._dead_letters.append((appended, claim, reason))
        elif appended.exception() is None:
            follower = self._followers[claim.partition.index]
            self._finish(follower, claim.batch.base_offset, claim.batch.end_offset)
            SETTLED.add(subscriber=self.name, outcome="dead_letter")
        else:
            self._send_dead_letter(claim, reason)

    def _skip_dropped(self, follower: _Follower) -> None:
        """Count and skip unfinished offsets that the log has dropped."""
        start = follower.partition.view.start_offset
        lost = follower.progress.drop_below(start)
        if lost:
            DROPPED.add(lost, subscriber=self.name)
            self._is_changed = True
            follower.cursor = max(follower.cursor, start)
            follower.claimed = {base for base in follower.claimed if base >= start}
            follower.retries = [retry for retry in follower.retries if retry[1] >= start]
            heapq.heapify(follower.retries)


def dead_letter(subscriber: str, claim: Claim, reason: str, now_ms: int) -> Append:
    """Return the dead letter of one batch: its bytes, origin and reason.

    The digest is that of the origin, so that a crash between letter and progress does not store the
    same letter twice.
    """
    partition, batch = claim.partition, claim.batch
    origin = f"{subscriber}\n{partition.topic}\n{partition.index}\n{batch.base_offset}".encode()
    headers = (
        ("topic", partition.topic.encode()),
        ("partition", str(partition.index).encode()),
        ("offset", str(batch.base_offset).encode()),
        ("subscriber", subscriber.encode()),
        ("tries", str(claim.tries + 1).encode()),
        ("reason", reason.encode(errors="backslashreplace")[:REASON_BYTES_MAX]),
    )
    record = Record(offset=0, timestamp_ms=now_ms, key=None, value=batch.payload, headers=headers)
    digest = hashlib.blake2b(origin, digest_size=DIGEST_BYTES).digest()
    return append_of_records([record], digest=digest)


def progress_path(name: str) -> str:
    return f"{SUBSCRIBERS_FOLDER}/{name}{PROGRESS_SUFFIX}"


def subscriber_names(disk: Disk) -> list[str]:
    """Return the subscribers on disk."""
    names = disk.list(SUBSCRIBERS_FOLDER)
    return [n.removesuffix(PROGRESS_SUFFIX) for n in names if n.endswith(PROGRESS_SUFFIX)]


def save_progress(
    disk: Disk, name: str, topic: str, topic_id: UUID | None, partitions: list[Progress]
) -> None:
    saved = SavedProgress(topic=topic, partitions=partitions, topic_id=topic_id)
    body = msgspec.msgpack.encode(saved)
    write_checkpoint(disk, progress_path(name), PROGRESS_KIND, PROGRESS_VERSION, body)


def remove_progress(disk: Disk, name: str) -> None:
    disk.unlink(progress_path(name))
    disk.sync_directory(SUBSCRIBERS_FOLDER)


def load_progress(disk: Disk, name: str) -> SavedProgress:
    """Return the progress of a subscriber; its file must exist."""
    path = progress_path(name)
    body = read_checkpoint(disk, path, PROGRESS_KIND, PROGRESS_VERSION, HINT)
    assert body is not None
    return msgspec.msgpack.decode(body, type=SavedProgress)
