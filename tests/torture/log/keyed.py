"""A compacted topic in the simulation: the latest record of each key survives every fault.

Every record carries its number. After a crash the latest record of a key is the newest
acknowledged one, or a newer one whose outcome is unknown. A tombstone may also have been removed.
"""

from __future__ import annotations

from concurrent.futures import Future
from dataclasses import dataclass, field

from frazil.errors import FrazilError
from frazil.log import AppendResult, Log, Record, append_of_records
from frazil.model import Rand
from frazil.settings import TopicConfig
from tests.torture.checker import Verdict
from tests.torture.history import Outcome, outcome_of

TOPIC = "keyed"
CONFIG = TopicConfig(cleanup="compact", compact_dirty_ratio_min=0.1, tombstone_grace_ms=5_000)
KEYS = (b"a", b"b", b"c")


@dataclass(slots=True)
class SentRecord:
    """One record sent: the number it carries, and its outcome."""

    key: bytes
    number: int
    is_tombstone: bool
    outcome: Outcome = "info"
    answer: Future[AppendResult] | None = None


@dataclass(slots=True)
class KeyedProducer:
    """Appends keyed records and keeps their outcomes."""

    rand: Rand
    records: list[SentRecord] = field(default_factory=list)

    def send(self, log: Log) -> None:
        sent = SentRecord(self.rand.choice(KEYS), len(self.records), self.rand.random() < 0.25)
        value = None
        if not sent.is_tombstone:
            value = b"%06d" % sent.number + bytes(self.rand.randrange(400))
        record = Record(offset=0, timestamp_ms=sent.number, key=sent.key, value=value)
        self.records.append(sent)
        try:
            sent.answer = log.append(TOPIC, append_of_records([record]))
        except FrazilError as error:
            sent.outcome = outcome_of(error)

    def collect(self) -> None:
        for sent in self.records:
            if sent.answer is not None and sent.answer.done():
                error = sent.answer.exception()
                sent.outcome = "ok" if error is None else outcome_of(error)
                sent.answer = None

    def drop_requests(self) -> None:
        """Drop the requests in flight: the log is gone. Their outcome stays unknown."""
        for sent in self.records:
            sent.answer = None

    def check(self, log: Log, verdict: Verdict) -> None:
        """Check that the latest record of each key is an allowed one."""
        found = dict.fromkeys(KEYS, "nothing")
        reader = log.reader(TOPIC, "earliest")
        while batches := reader.read():
            for record in (r for batch in batches for r in batch.records()):
                number = "nothing" if record.value is None else str(int(record.value[:6]))
                found[record.key or b""] = number
        reader.close()
        # With `when_full = "drop_oldest"` the operator accepts losses.
        has_dropped = log.partition(TOPIC, 0).dropped_count > 0
        for key in KEYS:
            allowed = self._allowed(key) | ({"nothing"} if has_dropped else set())
            if found[key] not in allowed:
                verdict.add("lost", f"key {key!r} is {found[key]}, not one of {allowed}")

    def _allowed(self, key: bytes) -> set[str]:
        allowed: set[str] = set()
        for sent in reversed([r for r in self.records if r.key == key and r.outcome != "fail"]):
            allowed.add("nothing" if sent.is_tombstone else str(sent.number))
            if sent.outcome == "ok":
                return allowed
        return allowed | {"nothing"}
