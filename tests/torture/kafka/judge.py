"""The judge: compares what can be read, by every way there is, with what clients were told."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field

from frazil.log import Log, Reader
from frazil.model import TopicPartition
from tests.torture.checker import Verdict
from tests.torture.kafka.clients import Fetched
from tests.torture.kafka.history import History, SentRecord, SentTransaction
from tests.torture.kafka.transactional import COPY_GROUP, KEYED, TWIN, copy_of


@dataclass(slots=True, kw_only=True)
class PartitionReading:
    """One partition, read in all ways while nothing else happens."""

    committed: Fetched
    """By Fetch with read_committed, filtered as clients do."""
    uncommitted: Fetched
    reader: tuple[tuple[int, bytes | None, bytes | None], ...]
    """By the reader of hot tier and lake."""
    latest_committed: int
    """By ListOffsets."""
    latest_uncommitted: int


def read_directly(
    log: Log, target: TopicPartition
) -> tuple[tuple[int, bytes | None, bytes | None], ...]:
    """Return what the hot tier and the lake read: committed records only."""
    partition = log.partition(*target)
    reader = Reader(partition, partition.view.start_offset)
    found = []
    while batches := reader.read():
        for batch in batches:
            if not batch.header.is_control:
                found += [
                    (each.offset, each.key, each.value)
                    for each in batch.records()
                    if each.offset >= partition.view.start_offset
                ]
    reader.close()
    return tuple(found)


@dataclass(slots=True, eq=False)
class Judge:
    """Checks one seed, after every start of the node and at the end."""

    history: History
    verdict: Verdict
    compacted: frozenset[TopicPartition]
    _seen: dict[TopicPartition, dict[int, bytes | None]] = field(
        default_factory=lambda: defaultdict(dict)
    )
    _stable: dict[TopicPartition, int] = field(default_factory=dict)
    _starts: dict[TopicPartition, int] = field(default_factory=dict)

    def check(self, readings: dict[TopicPartition, PartitionReading], *, is_last: bool) -> None:
        """Check all that holds at any time; with `is_last` also that everything is decided."""
        for target, reading in readings.items():
            self._check_ends(target, reading, is_last=is_last)
            self._check_readers(target, reading)
            if target not in self.compacted:
                self._check_seen(target, reading.committed)
        self._check_records(readings)
        self._check_transactions(readings)

    def _check_ends(
        self, target: TopicPartition, reading: PartitionReading, *, is_last: bool
    ) -> None:
        committed, uncommitted = reading.committed, reading.uncommitted
        told = (reading.latest_committed, reading.latest_uncommitted)
        found = (committed.end_offset, uncommitted.end_offset)
        if is_last and told != found:
            self.verdict.add("untrue", f"{target}: ListOffsets {told}, Fetch {found}")
        if is_last and found[0] != found[1]:
            self.verdict.add("untrue", f"{target}: the last stable offset stays at {found}")
        if found[0] < self._stable.get(target, 0):
            self.verdict.add("retracted", f"{target}: the last stable offset fell to {found[0]}")
        if committed.start_offset < self._starts.get(target, 0):
            self.verdict.add("retracted", f"{target}: the start fell to {committed.start_offset}")
        self._stable[target] = found[0]
        self._starts[target] = committed.start_offset

    def _check_readers(self, target: TopicPartition, reading: PartitionReading) -> None:
        committed = reading.committed.records
        # The reader came later: more may have been decided by then.
        read = tuple(each for each in reading.reader if each[0] < reading.committed.end_offset)
        if read != committed:
            differing = set(read) ^ set(committed)
            self.verdict.add("untrue", f"{target}: Fetch and Reader differ in {differing}")
        if not set(committed) <= set(reading.uncommitted.records):
            self.verdict.add("untrue", f"{target}: read_committed has more than read_uncommitted")

    def _check_seen(self, target: TopicPartition, committed: Fetched) -> None:
        seen = self._seen[target]
        now = {offset: value for offset, _, value in committed.records}
        for offset, value in seen.items():
            if offset >= committed.start_offset and now.get(offset, b"?") != value:
                self.verdict.add(
                    "retracted", f"{target}/{offset} was {value!r}, is {now.get(offset)!r}"
                )
        seen.update(now)

    def _check_records(self, readings: dict[TopicPartition, PartitionReading]) -> None:
        """Nothing twice, nothing lost, nothing aborted, all in order and in its place."""
        sent: dict[tuple[TopicPartition, bytes], list[tuple[SentRecord, SentTransaction | None]]]
        sent = defaultdict(list)
        for record, transaction in self.history.all_records():
            if record.value is not None:
                sent[record.target, record.value].append((record, transaction))
        for target, reading in readings.items():
            visible = Counter(value for _, _, value in reading.committed.records if value)
            stored = Counter(value for _, _, value in reading.uncommitted.records if value)
            for value, count in visible.items():
                if count > 1:
                    self.verdict.add("duplicate", f"{target}: {count} times {value!r}")
                self._check_visible(target, value, sent.get((target, value), []))
            for value, count in stored.items():
                if count > 1 and len(sent.get((target, value), [])) == 1:
                    self.verdict.add("duplicate", f"{target}: {count} times {value!r}, stored")
            self._check_order(target, reading.committed, sent)
            if target not in self.compacted:
                self._check_acknowledged(target, reading)

    def _check_visible(
        self,
        target: TopicPartition,
        value: bytes,
        sources: list[tuple[SentRecord, SentTransaction | None]],
    ) -> None:
        if not sources:
            self.verdict.add("foreign", f"{target}: {value!r} was never sent")
        elif not any(each is None or each.may_be_visible for _, each in sources):
            decision = sources[0][1] and sources[0][1].decision
            self.verdict.add("refused", f"{target}: {value!r} is visible, and was {decision}")

    def _check_order(
        self,
        target: TopicPartition,
        committed: Fetched,
        sent: dict[tuple[TopicPartition, bytes], list[tuple[SentRecord, SentTransaction | None]]],
    ) -> None:
        last: dict[str, int] = {}
        for offset, _, value in committed.records:
            sources = sent.get((target, value or b""), [])
            if len(sources) != 1:
                continue
            record = sources[0][0]
            if record.number <= last.get(record.source, 0):
                self.verdict.add("order", f"{target}/{offset}: {value!r} is too late")
            last[record.source] = record.number

    def _check_acknowledged(self, target: TopicPartition, reading: PartitionReading) -> None:
        committed = {offset: value for offset, _, value in reading.committed.records}
        stored = {offset: value for offset, _, value in reading.uncommitted.records}
        for record, transaction in self.history.all_records():
            if (
                record.target != target
                or not record.is_acknowledged
                or record.offset < reading.committed.start_offset
            ):
                continue
            if stored.get(record.offset, b"?") != record.value:
                self.verdict.add(
                    "lost", f"{record} is acknowledged, found {stored.get(record.offset)!r}"
                )
            is_stable = record.offset < reading.committed.end_offset
            is_committed = transaction is None or transaction.decision == "committed"
            if is_stable and is_committed and committed.get(record.offset, b"?") != record.value:
                self.verdict.add("lost", f"{record} is committed, and not visible")

    def _check_transactions(self, readings: dict[TopicPartition, PartitionReading]) -> None:
        """A transaction is visible as a whole or not at all."""
        values = {
            target: {value for _, _, value in reading.committed.records}
            for target, reading in readings.items()
        }
        for transaction in self.history.transactions:
            if transaction.decision != "commit_sent":
                continue
            decided = [
                each
                for each in transaction.records
                if each.is_acknowledged
                and each.value is not None
                and not each.value.startswith(b"copy:")
                and each.target in readings
                and each.target not in self.compacted
                and readings[each.target].committed.start_offset
                <= each.offset
                < readings[each.target].committed.end_offset
            ]
            shown = [each for each in decided if each.value in values[each.target]]
            if shown and len(shown) != len(decided):
                missing = [each for each in decided if each not in shown]
                self.verdict.add("lost", f"torn: {shown[0]} is visible, {missing[0]} is not")

    def check_offsets(
        self,
        committed: dict[tuple[str, TopicPartition], int],
        readings: dict[TopicPartition, PartitionReading],
        copies: dict[TopicPartition, TopicPartition],
    ) -> None:
        """At the end: offsets and outputs are there together, and no commit is lost."""
        for (group, target), sent in self.history.commits.items():
            last = max((number for number, is_sure in sent if is_sure), default=-1)
            found = committed[group, target]
            if found < last or (found >= 0 and found not in {number for number, _ in sent}):
                self.verdict.add("lost", f"{group} {target}: offset {found}, acknowledged {last}")
        self._check_transactional_offsets(committed)
        for source, target in copies.items():
            self._check_copies(source, target, committed[COPY_GROUP, source], readings)

    def _check_transactional_offsets(
        self, committed: dict[tuple[str, TopicPartition], int]
    ) -> None:
        allowed: dict[tuple[str, TopicPartition], set[int]] = defaultdict(set)
        least: dict[tuple[str, TopicPartition], int] = {}
        for transaction in self.history.transactions:
            for key, offset in transaction.offsets.items():
                if transaction.may_be_visible:
                    allowed[key].add(offset)
                if transaction.decision == "committed":
                    least[key] = max(offset, least.get(key, -1))
        for key, found in committed.items():
            if key in self.history.commits:
                continue
            if found < least.get(key, -1) or (found >= 0 and found not in allowed[key]):
                self.verdict.add(
                    "lost", f"{key}: offset {found}, at least {least.get(key)}, of {allowed[key]}"
                )

    def _check_copies(
        self,
        source: TopicPartition,
        target: TopicPartition,
        offset: int,
        readings: dict[TopicPartition, PartitionReading],
    ) -> None:
        expected = [
            copy_of(source, at) for at, _, _ in readings[source].committed.records if at < offset
        ]
        found = [value for _, _, value in readings[target].committed.records]
        if found != expected:
            missing = set(expected) - set(found)
            extra = Counter(found) - Counter(expected)
            self.verdict.add(
                "lost" if missing else "duplicate",
                f"{source} copied up to {offset}: missing {sorted(missing)[:3]}, too many "
                f"{list(extra)[:3]}, {len(found)} of {len(expected)}",
            )

    def check_twins(self, readings: dict[TopicPartition, PartitionReading]) -> None:
        """The compacted topic has the same latest record of each key as its twin."""
        latest: list[dict[bytes | None, bytes]] = []
        for target in (KEYED, TWIN):
            last = {key: value for _, key, value in readings[target].committed.records}
            latest.append({key: value for key, value in last.items() if value is not None})
        if latest[0] != latest[1]:
            differing = {
                key: (latest[0].get(key), latest[1].get(key))
                for key in latest[0].keys() | latest[1].keys()
                if latest[0].get(key) != latest[1].get(key)
            }
            self.verdict.add("lost", f"compacted and not compacted differ: {differing}")
