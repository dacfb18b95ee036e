"""A compacted topic in the simulation: whatever happens, the latest word on each key stands.

Every record says its number. What a key's latest record may be after a crash: the newest
acknowledged one, or a newer one whose fate is unknown. A tombstone may also have gone for good.
"""

from __future__ import annotations

from concurrent.futures import Future
from dataclasses import dataclass, field

from frazil.errors import FrazilError
from frazil.log import AppendResult, Log, Record, TopicConfig, append_of_records
from frazil.model import Rand
from tests.torture.checker import Verdict
from tests.torture.history import Outcome, outcome_of

TOPIC = "keyed"
CONFIG = TopicConfig(cleanup="compact", compact_dirty_ratio_min=0.1, tombstone_grace_ms=5_000)
KEYS = (b"a", b"b", b"c")


@dataclass(slots=True)
class Word:
    """One record sent: the number it carries, and what became of it."""

    key: bytes
    number: int
    is_tombstone: bool
    outcome: Outcome = "info"
    answer: Future[AppendResult] | None = None


@dataclass(slots=True)
class Speaker:
    """Says something about keys, and remembers what was heard."""

    rand: Rand
    words: list[Word] = field(default_factory=list)

    def say(self, log: Log) -> None:
        word = Word(self.rand.choice(KEYS), len(self.words), self.rand.random() < 0.25)
        value = (
            None if word.is_tombstone else b"%06d" % word.number + bytes(self.rand.randrange(400))
        )
        record = Record(offset=0, timestamp_ms=word.number, key=word.key, value=value)
        self.words.append(word)
        try:
            word.answer = log.append(TOPIC, append_of_records([record]))
        except FrazilError as error:
            word.outcome = outcome_of(error)

    def collect(self) -> None:
        for word in self.words:
            if word.answer is not None and word.answer.done():
                error = word.answer.exception()
                word.outcome = "ok" if error is None else outcome_of(error)
                word.answer = None

    def lose_answers(self) -> None:
        """The log is gone: what waits stays unknown."""
        for word in self.words:
            word.answer = None

    def check(self, log: Log, verdict: Verdict) -> None:
        """The latest record of each key is one that it may be."""
        found = dict.fromkeys(KEYS, "nothing")
        reader = log.reader(TOPIC, "earliest")
        while batches := reader.read():
            for record in (r for batch in batches for r in batch.records()):
                number = "nothing" if record.value is None else str(int(record.value[:6]))
                found[record.key or b""] = number
        reader.close()
        has_dropped = (
            log.partition(TOPIC, 0).dropped_count > 0
        )  # the operator chose that, and knows
        for key in KEYS:
            allowed = self._allowed(key) | ({"nothing"} if has_dropped else set())
            if found[key] not in allowed:
                verdict.add("lost", f"key {key!r} says {found[key]}, not one of {allowed}")

    def _allowed(self, key: bytes) -> set[str]:
        allowed: set[str] = set()
        for word in reversed([w for w in self.words if w.key == key and w.outcome != "fail"]):
            allowed.add("nothing" if word.is_tombstone else str(word.number))
            if word.outcome == "ok":
                return allowed
        return allowed | {"nothing"}
