"""Producers that send batches, retry unacknowledged ones and repeat acknowledged ones.

Three kinds: `plain` sends once and never retries; `numbered` has a producer id and sequences;
`digested` sends each batch with a digest. The latter two retry until acknowledged, and sometimes
repeat an acknowledged batch: either way the log must hold one copy, at one offset.
"""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Literal

from frazil.errors import FrazilError, Overloaded, Unavailable, Unresolved
from frazil.log import Append, AppendResult, Log, append_of_records, encode_batch
from frazil.log.produce import append_of_batch
from frazil.model import Rand
from tests.torture.checker import Verdict
from tests.torture.history import Attempts, Events, Outcome, Sent, outcome_of
from tests.torture.ids import digest_for, records_of

Kind = Literal["plain", "numbered", "digested"]
KINDS: tuple[Kind, ...] = ("plain", "numbered", "digested")
TOPIC = "torture"
REPEATED = 5
"""Repeats choose among this many newest batches: the log's deduplication window."""


@dataclass(slots=True)
class Actor:
    """One producer. `open` holds the batches to send again, oldest first."""

    number: int
    kind: Kind
    partition: int
    rand: Rand
    size_max: int = 700
    sequence: int = 0
    batches: dict[int, Attempts] = field(default_factory=dict)
    open: list[int] = field(default_factory=list)
    acknowledged: list[Sent] = field(default_factory=list)
    waiting: dict[int, Future[AppendResult]] = field(default_factory=dict)
    repeats: list[tuple[Sent, Future[AppendResult]]] = field(default_factory=list)

    def append_of(self, sent: Sent) -> Append:
        records = records_of(self.number, sent.sequence, sent.count, self.size_max)
        if self.kind == "numbered":
            batch = encode_batch(
                records, producer_id=self.number, producer_epoch=0, base_sequence=sent.sequence
            )
            return append_of_batch(batch)
        if self.kind == "digested":
            return append_of_records(records, digest=digest_for(self.number, sent.sequence))
        return append_of_records(records)

    def send(self, log: Log, events: Events | None = None, in_flight_max: int = 3) -> None:
        """Retry the open batches, then send a new one.

        A `digested` producer has one batch in flight at a time: it has no other way to keep order.
        """
        if self.kind == "digested":
            in_flight_max = min(in_flight_max, 1)
        for sequence in list(self.open):
            if sequence not in self.waiting:
                self._submit(log, self.batches[sequence], events)
        if len(self.waiting) < in_flight_max and len(self.open) == len(self.waiting):
            sent = Sent(
                producer=self.number,
                sequence=self.sequence,
                count=self.rand.choice((1, 1, 1, 2, 3)),
                partition=self.partition,
            )
            self.sequence += sent.count
            batch = self.batches[sent.sequence] = Attempts(sent)
            self.open.append(sent.sequence)
            self._submit(log, batch, events)

    def _submit(self, log: Log, batch: Attempts, events: Events | None) -> None:
        if events is not None:
            events.invoke(batch.sent)
        batch.waiting += 1
        try:
            answer = log.append(TOPIC, self.append_of(batch.sent), partition=self.partition)
        except FrazilError as error:
            self._settle(batch, outcome_of(error), -1, events)
        else:
            self.waiting[batch.sent.sequence] = answer

    def repeat(self, log: Log) -> None:
        """Send an acknowledged batch again, as a client does after a lost response."""
        if self.kind == "plain" or self.open or not self.acknowledged:
            return
        sent = self.rand.choice(self.acknowledged[-REPEATED:])
        try:
            answer = log.append(TOPIC, self.append_of(sent), partition=self.partition)
        except (Overloaded, Unavailable):
            return
        self.repeats.append((sent, answer))

    def collect(self, verdict: Verdict, events: Events | None = None) -> None:
        """Process the responses that have arrived."""
        for sequence, answer in list(self.waiting.items()):
            if not answer.done():
                continue
            del self.waiting[sequence]
            batch, error = self.batches[sequence], answer.exception()
            if error is not None:
                self._settle(batch, outcome_of(error), -1, events)
                continue
            appended = answer.result()
            if appended.end_offset - appended.base_offset != batch.sent.count:
                verdict.add("untrue", f"{batch.sent} returned {appended}")
            self._settle(batch, "ok", appended.base_offset, events)
        for sent, answer in [r for r in self.repeats if r[1].done()]:
            self._judge_repeat(sent, answer, verdict)
        self.repeats = [r for r in self.repeats if not r[1].done()]

    def _judge_repeat(self, sent: Sent, answer: Future[AppendResult], verdict: Verdict) -> None:
        error = answer.exception()
        if error is None:
            appended = answer.result()
            if (appended.base_offset, appended.is_duplicate) != (sent.offset, True):
                verdict.add("untrue", f"a repeat of {sent} returned {appended}")
        elif not isinstance(error, Overloaded | Unavailable | Unresolved):
            verdict.add("untrue", f"a repeat of {sent} failed: {error!r}")

    def _settle(
        self, batch: Attempts, outcome: Outcome, offset: int, events: Events | None
    ) -> None:
        batch.take(outcome, offset)
        sent = batch.final()
        if events is not None:
            events.write(outcome, sent.producer, sent.sequence, sent.count, sent.partition, offset)
        if outcome == "ok":
            self.acknowledged.append(sent)
        if outcome == "ok" or self.kind == "plain":
            self.open.remove(sent.sequence)

    def drop_requests(self) -> None:
        """Drop the requests in flight: the log is gone. Their outcome stays unknown."""
        if self.kind == "plain":
            self.open = []
        self.waiting = {}
        self.repeats = []

    def history(self) -> Iterable[Sent]:
        return (batch.final() for batch in self.batches.values())
