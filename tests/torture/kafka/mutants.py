"""Deliberate bugs in the Kafka port and below it. The simulation must detect every one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any
from unittest import mock

from frazil.disk import ids as disk_ids
from frazil.kafka.error_codes import ErrorCode
from frazil.kafka.fetch import fetch
from frazil.kafka.groups import loader as group_loader
from frazil.kafka.groups.offset_commits import OffsetCommits
from frazil.kafka.groups.offsets import OffsetStore
from frazil.kafka.produce.produce import Produce
from frazil.kafka.transactions import metadata
from frazil.kafka.transactions.completion import Completion
from frazil.kafka.transactions.coordinator import TransactionCoordinator
from frazil.kafka.transactions.markers import MarkerWriter
from frazil.kafka.transactions.metadata import TransactionMetadata, TransactionState
from frazil.kafka.transactions.participation import Participation
from frazil.kafka.transactions.transactional_ids import TransactionalIds
from frazil.log import BatchHeader, Marker, compaction, partition, reader, recovery
from frazil.log.checkpoint import load_transactions
from frazil.log.dedup.producers import Producers
from frazil.log.partition import Partition
from frazil.log.transactions.aborted import AbortedTransactions
from frazil.log.transactions.state import Transactions
from frazil.log.watermarks import WatermarkFile
from frazil.model import TopicPartition

Patches = list[Any]


def _undecided_visible() -> Patches:
    """Show committed readers what is not decided."""
    return [mock.patch.object(Transactions, "last_stable_offset", lambda self, durable: durable)]


def _aborted_visible() -> Patches:
    """Let the reader of hot tier and lake return aborted batches."""
    return [mock.patch.object(reader, "is_aborted", lambda batch, aborted: False)]


def _aborted_unlisted() -> Patches:
    """Tell no client which transactions were aborted."""
    return [mock.patch.object(fetch, "_aborted_in", lambda batches, partition: ())]


def _aborted_without_batches() -> Patches:
    """List aborted transactions whose batches and marker compaction has removed."""

    def aborted_in(batches: list[Any], partition: Partition) -> list[Any]:
        begin, end = batches[0].base_offset, batches[-1].end_offset
        return partition.view.aborted.overlapping(begin, end)

    return [mock.patch.object(fetch, "_aborted_in", aborted_in)]


def _forgotten_open() -> Patches:
    """Forget open transactions at restart."""
    original = load_transactions

    def load(files: Any, end_offset: int) -> tuple[Transactions, int]:
        found, from_offset = original(files, end_offset)
        return Transactions({}, found.aborted), max(from_offset, end_offset)

    return [mock.patch.object(recovery, "load_transactions", load)]


def _forgotten_aborted() -> Patches:
    """Forget aborted transactions at restart."""
    original = recovery._Replay.__init__

    def init(self: Any, files: Any, state: Any, now_ms: int, *, is_whole: bool) -> None:
        original(self, files, state, now_ms, is_whole=is_whole)
        self.transactions.aborted = AbortedTransactions()

    return [mock.patch.object(recovery._Replay, "__init__", init)]


def _prepare_not_durable() -> Patches:
    """Write markers before it is durable that the transaction is decided."""
    original = TransactionalIds.save

    def save(self: TransactionalIds, entry: Any, after: TransactionMetadata, saved: Any) -> None:
        if not after.state.is_prepared:
            original(self, entry, after, saved)
            return
        self._apply(entry, after)
        saved(ErrorCode.NONE)

    return [mock.patch.object(TransactionalIds, "save", save)]


def _answer_before_markers() -> Patches:
    """Answer EndTxn, and take the next transaction, before the markers are written."""
    original = MarkerWriter.write

    def write(self: Any, marker: Marker, producer: Any, partitions: Any, written: Any) -> None:
        original(self, marker, producer, partitions, lambda: None)
        written()

    return [mock.patch.object(MarkerWriter, "write", write)]


def _one_marker_missing() -> Patches:
    """Forget the marker of one partition, if there are several."""
    original = MarkerWriter.write

    def write(self: Any, marker: Marker, producer: Any, partitions: Any, written: Any) -> None:
        original(self, marker, producer, sorted(partitions)[: max(1, len(partitions) - 1)], written)

    return [mock.patch.object(MarkerWriter, "write", write)]


def _prepared_not_finished() -> Patches:
    """Leave decided transactions alone at restart."""
    original = TransactionCoordinator.start

    def start(self: TransactionCoordinator) -> None:
        with mock.patch.object(Completion, "finish", lambda self, entry: None):
            original(self)

    return [mock.patch.object(TransactionCoordinator, "start", start)]


def _prepared_aborted() -> Patches:
    """Abort at restart what was to be committed."""
    original = TransactionCoordinator.start

    def start(self: TransactionCoordinator) -> None:
        for entry in self.ids:
            if entry.current.state is TransactionState.PREPARE_COMMIT:
                entry.current = replace(entry.current, state=TransactionState.PREPARE_ABORT)
        original(self)

    return [mock.patch.object(TransactionCoordinator, "start", start)]


def _no_timeout() -> Patches:
    """Never abort the transaction of a client that is gone."""
    return [mock.patch.object(Completion, "_watch", lambda self, entry, delay_ms: None)]


def _same_epoch() -> Patches:
    """Give a new producer the epoch of the one before it."""
    original = TransactionMetadata.initialized

    def initialized(self: TransactionMetadata, **options: Any) -> TransactionMetadata | None:
        after = original(self, **options)
        return after and replace(after, epoch=max(0, self.epoch), producer_id=self.producer_id)

    return [mock.patch.object(TransactionMetadata, "initialized", initialized)]


def _no_bump_at_end() -> Patches:
    """Keep the epoch at the end of a transaction: a late EndTxn hits the next one."""
    original = TransactionMetadata.prepared

    def prepared(self: TransactionMetadata, marker: Marker, **options: Any) -> TransactionMetadata:
        after = original(self, marker, **options)
        return replace(after, epoch=self.epoch, next_producer_id=-1)

    return [mock.patch.object(TransactionMetadata, "prepared", prepared)]


def _epochs_never_used_up() -> Patches:
    """Start a used up producer id anew, with the epochs it had."""

    def is_exhausted(self: TransactionMetadata) -> bool:
        return False

    def completed(self: TransactionMetadata, now_ms: int) -> TransactionMetadata:
        after = original(self, now_ms)
        return replace(after, epoch=0) if after.epoch == metadata.EPOCH_MAX else after

    original = TransactionMetadata.completed
    return [
        mock.patch.object(TransactionMetadata, "is_exhausted", property(is_exhausted)),
        mock.patch.object(TransactionMetadata, "completed", completed),
    ]


def _unchecked_batches() -> Patches:
    """Write batches of producers that are fenced, or in no transaction."""
    return [mock.patch.object(Participation, "check", lambda *_: ErrorCode.NONE)]


def _refused_for_good() -> Patches:
    """Refuse all batches of a producer after one that was late."""

    async def check_refused(self: Produce, target: TopicPartition, header: BatchHeader) -> None:
        self._refused.check(target, header)

    return [mock.patch.object(Produce, "_check_refused", check_refused)]


def _forgotten_producers() -> Patches:
    """Forget at restart what producers have written."""

    def decode(data: bytes, now_ms: int) -> Producers:
        return Producers()

    return [
        mock.patch.object(Producers, "decode", decode),
        mock.patch.object(Producers, "remember", _remember_once(Producers.remember)),
    ]


def _remember_once(original: Callable[..., Any]) -> Callable[..., Any]:
    """Forget all but the last batch of a producer."""

    def remember(self: Producers, header: Any, base_offset: int, now_ms: int) -> Any:
        before = original(self, header, base_offset, now_ms)
        known = self._known[header.producer_id]
        self._known[header.producer_id] = known._replace(past=known.past[-1:])
        return before

    return remember


def _repeated_producer_ids() -> Patches:
    """Give away producer ids before it is durable that they are used."""
    return [mock.patch.object(disk_ids._Limit, "store", lambda self, limit: None)]


def _offsets_at_once() -> Patches:
    """Apply offsets of a transaction when they are sent."""

    def stage(self: OffsetStore, producer_id: int, group_id: str, target: Any, each: Any) -> None:
        self.put(group_id, target, each)

    return [mock.patch.object(OffsetStore, "stage", stage)]


def _offsets_without_transaction() -> Patches:
    """Lose the offsets of a transaction when it is committed."""

    def end(self: OffsetStore, producer_id: int, marker: Marker) -> None:
        self._staged.pop(producer_id, None)

    return [mock.patch.object(OffsetStore, "end_transaction", end)]


def _offsets_lost_at_restart() -> Patches:
    """Do not read offsets of committed transactions at start."""
    return [mock.patch.object(group_loader, "marker_of", lambda payload: Marker.ABORT)]


def _commit_not_durable() -> Patches:
    """Acknowledge offsets before they are written."""
    original = OffsetCommits._append

    def append(self: Any, group_id: str, offsets: Any, answer: Any, producer: Any = None) -> None:
        answer(ErrorCode.NONE)
        original(self, group_id, offsets, lambda _: None, producer)

    return [mock.patch.object(OffsetCommits, "_append", append)]


def _aborted_compacts() -> Patches:
    """Let an aborted record replace a committed one of its key."""
    original = compaction._latest_offsets

    def latest(files: Any, segments: Any, aborted: Any) -> Any:
        return original(files, segments, AbortedTransactions())

    return [mock.patch.object(compaction, "_latest_offsets", latest)]


def _markers_compacted() -> Patches:
    """Remove markers although batches of their transaction are left."""

    def kept(self: Any, batch: Any, header: Any) -> bytes | None:
        self.has_removed = True
        return None

    return [mock.patch.object(compaction._Markers, "kept", kept)]


def _trimmed_not_durable() -> Patches:
    """Answer DeleteRecords before the new start is durable."""
    return [mock.patch.object(WatermarkFile, "trim", lambda self, start, dropped, *_: None)]


def _deleted_topic_stays() -> Patches:
    """Delete a topic in memory only."""
    from frazil.log.topics import TopicList

    original = TopicList.remove

    def remove(self: Any, name: str) -> Any:
        with mock.patch.object(self._disk, "rename", lambda *_: None):
            return original(self, name)

    return [mock.patch.object(TopicList, "remove", remove)]


def _ack_before_sync() -> Patches:
    """Acknowledge before the data is durable."""
    return [mock.patch.object(partition.Partition, "sync", lambda self: None)]


MUTANTS: dict[str, Callable[[], Patches]] = {
    "undecided_visible": _undecided_visible,
    "aborted_visible": _aborted_visible,
    "aborted_unlisted": _aborted_unlisted,
    "aborted_without_batches": _aborted_without_batches,
    "forgotten_open": _forgotten_open,
    "forgotten_aborted": _forgotten_aborted,
    "prepare_not_durable": _prepare_not_durable,
    "answer_before_markers": _answer_before_markers,
    "one_marker_missing": _one_marker_missing,
    "prepared_not_finished": _prepared_not_finished,
    "prepared_aborted": _prepared_aborted,
    "no_timeout": _no_timeout,
    "same_epoch": _same_epoch,
    "no_bump_at_end": _no_bump_at_end,
    "epochs_never_used_up": _epochs_never_used_up,
    "unchecked_batches": _unchecked_batches,
    "refused_for_good": _refused_for_good,
    "forgotten_producers": _forgotten_producers,
    "repeated_producer_ids": _repeated_producer_ids,
    "offsets_at_once": _offsets_at_once,
    "offsets_without_transaction": _offsets_without_transaction,
    "offsets_lost_at_restart": _offsets_lost_at_restart,
    "commit_not_durable": _commit_not_durable,
    "aborted_compacts": _aborted_compacts,
    "markers_compacted": _markers_compacted,
    "trimmed_not_durable": _trimmed_not_durable,
    "deleted_topic_stays": _deleted_topic_stays,
    "ack_before_sync": _ack_before_sync,
}


@contextmanager
def mutated(name: str) -> Iterator[None]:
    """Apply the named bug for the duration of the block."""
    patches = MUTANTS[name]()
    for patch in patches:
        patch.start()
    try:
        yield
    finally:
        for patch in reversed(patches):
            patch.stop()
