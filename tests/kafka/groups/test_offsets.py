"""Offsets: committed when durable, found after a restart, decided by markers, forgotten in time."""

from __future__ import annotations

import pytest

from frazil.kafka.error_codes import ErrorCode
from frazil.kafka.groups.journal import TOPIC as OFFSETS_TOPIC
from frazil.kafka.groups.lag import COST_FACTOR, GroupLag, RecentLag
from frazil.kafka.wire.messages.offset_delete import OffsetDeleteRequest, OffsetDeleteResponse
from frazil.kafka.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
)
from frazil.log import Marker
from frazil.model import Rand, TopicPartition
from tests.kafka.groups.build import CONFIG, GROUP, TOPIC, Box, Consumer, Node, code_of, settle
from tests.log.build import batch
from tests.sim.clock import SimClock
from tests.sim.disk import Faults

PRODUCER = 77


@pytest.fixture
def node() -> Node:
    return Node()


def stage(node: Node, partition: int, offset: int, *, epoch: int = 0) -> ErrorCode:
    """Send TxnOffsetCommit of one partition."""
    box: Box[TxnOffsetCommitResponse] = Box()
    each = TxnOffsetCommitRequest.TxnOffsetCommitRequestPartition(
        partition_index=partition, committed_offset=offset
    )
    topic = TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic(name=TOPIC, partitions=[each])
    request = TxnOffsetCommitRequest(
        transactional_id="x",
        group_id=GROUP,
        producer_id=PRODUCER,
        producer_epoch=epoch,
        topics=[topic],
    )
    node.coordinator.commits.commit_in_transaction(request, box)
    node.run()
    return ErrorCode(box.got.topics[0].partitions[0].error_code)


def end(node: Node, marker: Marker, *, epoch: int = 0) -> None:
    """Write a marker."""
    done: list[Exception | None] = []
    node.coordinator.commits.end_transaction(
        marker,
        producer_id=PRODUCER,
        producer_epoch=epoch,
        coordinator_epoch=0,
        done=done.append,
    )
    node.run()
    assert done == [None]


def test_an_answer_means_durable(node: Node) -> None:
    """Neither the client nor a reader hears of an offset before the sync; afterwards it survives
    a power cut."""
    box = node.commit(0, 5, metadata="where I was")
    assert box.value is None and node.fetch() == {}
    node.run()
    assert code_of(box.got) is ErrorCode.NONE
    node.disk = node.disk.crash(Rand(1))
    node.start()
    assert node.fetch() == {0: (5, "where I was", 0)}


@pytest.mark.parametrize("marker", Marker)
@pytest.mark.parametrize("is_killed", [False, True])
def test_a_marker_decides(node: Node, marker: Marker, is_killed: bool) -> None:
    """Offsets of a transaction count when it commits, never when it aborts; until then, a consumer
    that wants stable ones is told to ask again. A kill changes none of that."""
    node.commit(0, 1)
    node.run()
    assert stage(node, 0, 9) is ErrorCode.NONE
    if is_killed:
        node.kill()
    assert node.fetch() == {0: (1, "", 0)}
    assert node.fetch(is_stable=True) == {0: (-1, "", ErrorCode.UNSTABLE_OFFSET_COMMIT)}
    end(node, marker)
    decided = {0: (9 if marker is Marker.COMMIT else 1, "", 0)}
    assert node.fetch(is_stable=True) == decided
    node.kill()
    assert node.fetch(is_stable=True) == decided


def test_the_later_record_counts(node: Node) -> None:
    """A plain commit after a transactional one wins, before and after a kill, as compaction
    keeps only that one."""
    stage(node, 0, 9)
    node.commit(0, 4)
    node.run()
    end(node, Marker.COMMIT)
    assert node.fetch() == {0: (4, "", 0)}
    node.kill()
    assert node.fetch() == {0: (4, "", 0)}


def test_a_fenced_producer_stages_nothing(node: Node) -> None:
    """An older epoch of a transactional producer is refused."""
    assert stage(node, 0, 3, epoch=2) is ErrorCode.NONE
    end(node, Marker.ABORT, epoch=2)
    assert stage(node, 0, 4, epoch=1) is ErrorCode.INVALID_PRODUCER_EPOCH
    assert node.fetch(is_stable=True) == {}


def test_a_deletion_covers_what_is_on_its_way(node: Node) -> None:
    """OffsetDelete removes a commit that was sent before it and is durable after it was sent."""
    node.commit(0, 5)
    box: Box[OffsetDeleteResponse] = Box()
    partition = OffsetDeleteRequest.OffsetDeleteRequestPartition(partition_index=0)
    topic = OffsetDeleteRequest.OffsetDeleteRequestTopic(name=TOPIC, partitions=[partition])
    request = OffsetDeleteRequest(group_id=GROUP, topics=[topic])
    node.coordinator.administration.delete_offsets(request, box)
    node.run()
    assert box.got.topics[0].partitions[0].error_code == ErrorCode.NONE
    assert node.fetch() == {}
    node.kill()
    assert node.fetch() == {}


def test_offsets_of_empty_groups_expire(node: Node) -> None:
    """They stay as long as there is a member, and for the retention after the last one left."""
    member = Consumer(node, "c")
    settle(node, member)
    node.commit(0, 5, generation=member.generation, member_id=member.member_id)
    node.run()
    group = node.coordinator.groups.classic(GROUP)
    assert group is not None
    group.members[member.member_id].session_timeout_ms = 2 * CONFIG.offsets_retention_ms
    member.heartbeat()
    node.pass_time(CONFIG.offsets_retention_ms + CONFIG.expiry_interval_ms)
    assert node.fetch() == {0: (5, "", 0)}
    member.leave()
    node.pass_time(CONFIG.offsets_retention_ms - CONFIG.expiry_interval_ms)
    assert node.fetch() == {0: (5, "", 0)}
    node.pass_time(4 * CONFIG.expiry_interval_ms)
    assert node.fetch() == {} and node.coordinator.groups.get(GROUP) is None
    node.kill()
    assert node.fetch() == {} and node.coordinator.groups.get(GROUP) is None


def test_compaction_keeps_the_last(node: Node) -> None:
    """After hundreds of commits the topic is small, and a start finds the last ones."""
    for offset in range(300):
        node.commit(offset % 3, offset)
        node.run()
        node.log.maintain()
    batches = sum(s.info.size_bytes for s in node.log.partition(OFFSETS_TOPIC, 0).view.segments)
    assert batches < 20_000
    node.kill()
    assert node.fetch() == {0: (297, "", 0), 1: (298, "", 0), 2: (299, "", 0)}


def test_a_full_disk_is_no_loss(node: Node) -> None:
    """Commits and joins are refused with an error that clients retry, and succeed later."""
    node.commit(0, 5)
    node.run()
    member = Consumer(node, "c")
    node.disk.faults = Faults(capacity_bytes=0)
    refused = node.commit(0, 6)
    node.run()
    member.join()
    member.look()
    node.pass_time(600)
    assert code_of(refused.got) is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert member.joining is not None
    assert member.joining.got.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert node.fetch() == {0: (5, "", 0)}
    node.disk.faults = Faults()
    node.log.maintain()
    member.look()
    settle(node, member)
    assert member.owned == {0, 1, 2}
    node.kill()
    assert member.heartbeat() is ErrorCode.NONE and node.fetch() == {0: (5, "", 0)}


def test_lag(node: Node) -> None:
    """The lag is what is readable and not committed."""
    for _ in range(5):
        node.log.append(TOPIC, batch(b"v"), partition=1)
    node.commit(1, 2)
    node.run()
    (found,) = node.coordinator.lag()
    assert (found.partition, found.lag) == (TopicPartition(TOPIC, 1), 3)


def test_a_costly_report_of_lag_is_kept_for_longer() -> None:
    clock = SimClock()
    calls: list[int] = []

    def compute() -> list[GroupLag]:
        calls.append(clock.monotonic_ns())
        clock.advance(1000)
        return []

    recent = RecentLag(compute, clock)
    for wait_ms in (0, COST_FACTOR * 1000 - 1, 1):
        clock.advance(wait_ms)
        recent.get()
    assert len(calls) == 2
