"""The checker: a pure function from the history and the stored records to a verdict.

It imports no code of the log. A run is valid when no anomaly was counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from tests.torture.history import Sent

Identity = tuple[int, int]

ANOMALIES = (
    "lost",  # acknowledged but not stored
    "duplicate",  # stored twice
    "order",  # a producer's later record is stored before an earlier one
    "hole",  # an offset without a record
    "refused",  # rejected but stored
    "foreign",  # never sent, or stored with a different value
    "moved",  # not at the acknowledged offset
    "retracted",  # returned to a reader earlier, now gone or changed
    "untrue",  # an unexpected error or a wrong response
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """The records that a new reader returns from one partition, as (offset, identity)."""

    start_offset: int
    end_offset: int
    records: tuple[tuple[int, Identity | None], ...]


@dataclass(slots=True)
class Verdict:
    """Counts of anomalies by name, and the first 20 examples."""

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
    """Compare the stored records with the history.

    `seen_before` holds the records that earlier readers returned, per partition and offset.
    """
    verdict = Verdict()
    locations: dict[Identity, tuple[int, int]] = {}
    sent = list(history)
    outcomes = {(s.producer, s.sequence + i): s.outcome for s in sent for i in range(s.count)}
    for partition, view in observed.items():
        _check_partition(verdict, partition, view, locations, outcomes)
    for batch in sent:
        if batch.outcome == "ok" and batch.partition in observed:
            _check_acknowledged(verdict, batch, observed[batch.partition], locations)
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
    locations: dict[Identity, tuple[int, int]],
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
        if identity in locations:
            verdict.add(
                "duplicate", f"{identity} at {locations[identity]} and {partition}/{offset}"
            )
            continue
        locations[identity] = (partition, offset)
        if outcomes[identity] == "fail":
            verdict.add("refused", f"{identity} at {partition}/{offset}")
        producer, sequence = identity
        if last_sequence.get(producer, -1) > sequence:
            verdict.add("order", f"{identity} at {partition}/{offset}")
        last_sequence[producer] = sequence
    if expected != view.end_offset:
        verdict.add("hole", f"partition {partition} ends at {expected}, not {view.end_offset}")


def _check_acknowledged(
    verdict: Verdict, batch: Sent, view: Observed, locations: Mapping[Identity, tuple[int, int]]
) -> None:
    for i in range(batch.count):
        identity, offset = (batch.producer, batch.sequence + i), batch.offset + i
        if offset < view.start_offset:
            continue  # removed by retention
        location = locations.get(identity)
        acknowledged = f"{identity} acknowledged at {batch.partition}/{offset}"
        if location is None:
            verdict.add("lost", acknowledged)
        elif location != (batch.partition, offset):
            verdict.add("moved", f"{acknowledged}, found at {location}")
