"""The judge: a pure function from what was promised and what is there to a verdict.

It knows nothing of the log's code. Every list of anomalies must be empty.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from tests.torture.history import Sent

Identity = tuple[int, int]

ANOMALIES = (
    "lost",  # acknowledged, not there
    "duplicate",  # there twice
    "order",  # a producer's later record lies before its earlier one
    "hole",  # an offset without a record
    "refused",  # refused, and there all the same
    "foreign",  # never sent, or not as it was sent
    "moved",  # not at the offset that was promised
    "retracted",  # shown to a reader once, and gone or changed now
    "untrue",  # an error or an answer that should not have been
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """What a fresh reader finds in one partition: every offset with its identity."""

    start_offset: int
    end_offset: int
    records: tuple[tuple[int, Identity | None], ...]


@dataclass(slots=True)
class Verdict:
    """Anomalies by name, each with the first few examples."""

    counts: Counter[str] = field(default_factory=Counter)
    examples: list[str] = field(default_factory=list)

    def add(self, anomaly: str, example: str) -> None:
        assert anomaly in ANOMALIES
        self.counts[anomaly] += 1
        if len(self.examples) < 20:
            self.examples.append(f"{anomaly}: {example}")

    @property
    def is_valid(self) -> bool:
        return not any(self.counts.values())

    def merge(self, other: Verdict, where: str) -> None:
        self.counts += other.counts
        self.examples += [f"{where} {e}" for e in other.examples][: 20 - len(self.examples)]


def check(
    history: Iterable[Sent],
    observed: Mapping[int, Observed],
    seen_before: Mapping[int, Mapping[int, Identity]] | None = None,
) -> Verdict:
    """Compare. `seen_before` is what readers were shown earlier, per partition and offset."""
    verdict = Verdict()
    places: dict[Identity, tuple[int, int]] = {}
    sent = list(history)
    outcomes = {(s.producer, s.sequence + i): s.outcome for s in sent for i in range(s.count)}
    for partition, view in observed.items():
        _check_partition(verdict, partition, view, places, outcomes)
    for batch in sent:
        if batch.outcome == "ok" and batch.partition in observed:
            _check_promise(verdict, batch, observed[batch.partition], places)
    for partition, seen in (seen_before or {}).items():
        view = observed[partition]
        now = dict(view.records)
        for offset, identity in seen.items():
            if offset >= view.start_offset and now.get(offset) != identity:
                verdict.add("retracted", f"{identity} at {partition}/{offset}")
    return verdict


def _check_partition(
    verdict: Verdict,
    partition: int,
    view: Observed,
    places: dict[Identity, tuple[int, int]],
    outcomes: Mapping[Identity, str],
) -> None:
    expected = view.start_offset
    last_sequence: dict[int, int] = {}
    for offset, identity in view.records:
        if offset != expected:
            verdict.add("hole", f"offset {offset} of partition {partition}, expected {expected}")
        expected = offset + 1
        if identity is None or identity not in outcomes:
            verdict.add("foreign", f"{identity} at {partition}/{offset}")
            continue
        if identity in places:
            verdict.add("duplicate", f"{identity} at {places[identity]} and {partition}/{offset}")
            continue
        places[identity] = (partition, offset)
        if outcomes[identity] == "fail":
            verdict.add("refused", f"{identity} at {partition}/{offset}")
        producer, sequence = identity
        if last_sequence.get(producer, -1) > sequence:
            verdict.add("order", f"{identity} at {partition}/{offset}")
        last_sequence[producer] = sequence
    if expected != view.end_offset:
        verdict.add("hole", f"partition {partition} ends at {expected}, not {view.end_offset}")


def _check_promise(
    verdict: Verdict, batch: Sent, view: Observed, places: Mapping[Identity, tuple[int, int]]
) -> None:
    for i in range(batch.count):
        identity, offset = (batch.producer, batch.sequence + i), batch.offset + i
        if offset < view.start_offset:
            continue  # expired since, as it was allowed to
        place = places.get(identity)
        if place is None:
            verdict.add("lost", f"{identity} promised at {batch.partition}/{offset}")
        elif place != (batch.partition, offset):
            verdict.add("moved", f"{identity} promised at {batch.partition}/{offset}, is {place}")
