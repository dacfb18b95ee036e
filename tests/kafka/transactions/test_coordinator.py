"""The rules of transactions, one by one, over a simulated disk."""

from __future__ import annotations

import pytest

from frazil.errors import Overloaded
from frazil.kafka.error_codes import ErrorCode
from frazil.kafka.transactions.metadata import EPOCH_LAST, TransactionState
from frazil.kafka.wire.messages.describe_transactions import DescribeTransactionsRequest
from frazil.kafka.wire.messages.list_transactions import ListTransactionsRequest
from frazil.log import Marker, Record, append_of_marker, append_of_records
from frazil.model import Rand
from frazil.settings import TransactionsConfig
from tests.kafka.groups.build import TOPIC
from tests.kafka.transactions.build import TIMEOUT_MS, Node, Producer, code_of, written
from tests.sim.disk import Faults, PowerCut

BOTH = pytest.mark.parametrize("version", [0, 2])


def begun(producer: Producer, *partitions: int, offsets: bool = False) -> Producer:
    box = producer.add(*partitions, offsets=offsets)
    producer.node.run()
    assert box.got is ErrorCode.NONE
    return producer


@BOTH
def test_committed_is_read_and_aborted_is_not(version: int) -> None:
    node = Node()
    producer = Producer(node, version=version).started()
    for number, is_commit in enumerate([True, False, True]):
        begun(producer, 0, 1)
        for partition in (0, 1):
            assert not isinstance(producer.produce(partition, b"%d" % number), ErrorCode)
        node.run()
        assert b"%d" % number not in node.visible(0)
        assert producer.ended(is_commit=is_commit) is ErrorCode.NONE
        assert node.is_stable()
    assert node.visible(0) == node.visible(1) == [b"0", b"2"]


def ready(version: int) -> Producer:
    """A producer with a record in each partition, ready to commit."""
    producer = begun(Producer(Node(), version=version).started(), 0, 1, 2)
    for partition in range(3):
        producer.produce(partition, b"kept")
    producer.node.run()
    return producer


@BOTH
def test_the_end_is_answered_after_the_markers(version: int) -> None:
    """Whoever reads after the answer sees the commit."""
    producer = ready(version)
    node = producer.node
    end = producer.end(is_commit=True)
    while end.value is None:
        assert not node.is_stable()
        node.log.writer.step()
        while node.posted and end.value is None:
            node.posted.popleft()()
    assert node.is_stable()
    assert [node.visible(partition) for partition in range(3)] == [[b"kept"]] * 3


@BOTH
def test_markers_wait_for_room_on_the_disk(version: int) -> None:
    producer = ready(version)
    node = producer.node
    end = producer.end(is_commit=True)
    node.log.writer.step()  # the decision is durable
    node.disk.faults.capacity_bytes = 0
    node.pass_time(1000)
    assert end.value is None and node.disk.fired["full"]
    assert producer.end(is_commit=True).got.error_code == ErrorCode.CONCURRENT_TRANSACTIONS
    node.disk.faults.capacity_bytes = None
    node.pass_time(1000)
    assert end.got.error_code == ErrorCode.NONE and node.is_stable()
    assert [node.visible(partition) for partition in range(3)] == [[b"kept"]] * 3


@BOTH
def test_a_transaction_ends_although_the_log_is_full(version: int) -> None:
    """Until then nothing behind its first record can be trimmed."""
    producer = ready(version)
    node = producer.node
    for size in (5_000, 500, 1):
        record = Record(offset=0, timestamp_ms=0, key=b"k", value=bytes(size))
        with pytest.raises(Overloaded):
            while True:
                node.log.append(TOPIC, append_of_records([record]))
                node.run()
    assert producer.ended(is_commit=True) is ErrorCode.NONE
    assert node.is_stable()


@BOTH
def test_a_second_producer_fences_the_first(version: int) -> None:
    node = Node()
    first = begun(Producer(node, version=version).started(), 0)
    assert not isinstance(first.produce(0, b"lost"), ErrorCode)
    node.run()
    second = Producer(node, version=version)
    box = second.init()
    node.run()
    assert box.got.error_code == ErrorCode.CONCURRENT_TRANSACTIONS
    assert first.produce(0, b"zombie") is ErrorCode.INVALID_PRODUCER_EPOCH
    assert first.ended(is_commit=True) is ErrorCode.PRODUCER_FENCED
    assert first.ended(is_commit=False) is ErrorCode.PRODUCER_FENCED
    second.started()
    add = first.add(0)
    node.run()
    assert add.got is ErrorCode.PRODUCER_FENCED
    again = first.init(is_resuming=True)
    assert again.got.error_code == ErrorCode.PRODUCER_FENCED
    begun(second, 0).produce(0, b"kept")
    assert second.ended(is_commit=True) is ErrorCode.NONE
    assert node.visible(0) == [b"kept"]


def test_a_batch_outside_of_its_transaction_is_refused() -> None:
    node = Node()
    producer = Producer(node).started()
    assert producer.produce(0, b"none is open") is ErrorCode.INVALID_TXN_STATE
    begun(producer, 0)
    assert producer.produce(1, b"another partition") is ErrorCode.INVALID_TXN_STATE
    assert not isinstance(producer.produce(0, b"kept"), ErrorCode)
    end = producer.end(is_commit=True)
    assert producer.produce(0, b"decided") is ErrorCode.INVALID_TXN_STATE
    node.run()
    assert end.got.error_code == ErrorCode.NONE
    assert producer.produce(0, b"over") is ErrorCode.INVALID_TXN_STATE
    begun(producer, 2)
    assert producer.produce(0, b"of the one before") is ErrorCode.INVALID_TXN_STATE
    assert Producer(node, "y", producer_id=0, epoch=0).produce(0, b"unknown") is (
        ErrorCode.INVALID_PRODUCER_ID_MAPPING
    )
    assert (node.visible(0), node.visible(1)) == ([b"kept"], [])


@pytest.mark.parametrize("is_commit", [True, False])
def test_offsets_wait_for_the_end(is_commit: bool) -> None:
    node = Node()
    producer = Producer(node).started()
    assert code_of(producer.commit_offset(1, 5).got) is ErrorCode.INVALID_TXN_STATE
    begun(producer, offsets=True)
    box = producer.commit_offset(1, 7)
    node.run()
    assert code_of(box.got) is ErrorCode.NONE
    assert node.fetch() == {}
    assert node.fetch(is_stable=True)[1][2] == ErrorCode.UNSTABLE_OFFSET_COMMIT
    node.kill()
    assert producer.ended(is_commit=is_commit) is ErrorCode.NONE
    expected = {1: (7, "", 0)} if is_commit else {}
    assert node.fetch(is_stable=True) == node.fetch() == expected


def test_timeouts_above_the_maximum_are_refused() -> None:
    node = Node(transactions=TransactionsConfig(timeout_ms_max=1000, ids_max=1))
    for timeout_ms, code in (
        (1001, ErrorCode.INVALID_TRANSACTION_TIMEOUT),
        (0, ErrorCode.INVALID_TRANSACTION_TIMEOUT),
        (1000, ErrorCode.NONE),
    ):
        box = Producer(node, timeout_ms=timeout_ms).init()
        node.run()
        assert box.got.error_code == code
    assert Producer(node, "y", timeout_ms=9).init().got.error_code == ErrorCode.POLICY_VIOLATION
    assert Producer(node, "", timeout_ms=9).init().got.error_code == ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize("is_killed", [True, False])
@BOTH
def test_an_abandoned_transaction_is_aborted(version: int, is_killed: bool) -> None:
    node = Node()
    producer = begun(Producer(node, version=version).started(), 0, 1)
    producer.produce(0, b"abandoned")
    node.pass_time(TIMEOUT_MS // 2)
    if is_killed:
        node.kill()
    node.pass_time(TIMEOUT_MS // 2 - 1)
    assert not node.is_stable()
    node.pass_time(1)
    node.run()
    assert node.is_stable() and node.visible(0) == []
    assert producer.ended(is_commit=True) is ErrorCode.PRODUCER_FENCED
    assert producer.produce(0, b"late") is ErrorCode.INVALID_PRODUCER_EPOCH


def test_a_client_goes_on_after_a_restart() -> None:
    node = Node()
    producer = begun(Producer(node).started(), 0)
    producer.produce(0, b"before")
    node.run()
    node.kill()
    assert not isinstance(producer.produce(0, b"after"), ErrorCode)
    assert producer.ended(is_commit=True) is ErrorCode.NONE
    assert node.visible(0) == [b"before", b"after"]


@BOTH
def test_repeated_requests_are_answered_alike(version: int) -> None:
    node = Node()
    producer = begun(Producer(node, version=version).started(), 0)
    producer.produce(0, b"once")
    identity = producer.identity
    box = producer.end(is_commit=True)
    assert producer.end(is_commit=True).got.error_code == ErrorCode.CONCURRENT_TRANSACTIONS
    node.run()
    node.kill()
    node.run()
    for _ in range(2):
        assert producer.identity == identity
        repeated = producer.end(is_commit=True)
        assert repeated.got == box.got
        assert producer.end(is_commit=False).got.error_code == ErrorCode.INVALID_TXN_STATE
    assert producer.take(box.got) is ErrorCode.NONE
    assert (producer.identity == identity) == (version == 0)
    assert node.visible(0) == [b"once"]


def test_a_late_end_does_not_reach_the_next_transaction() -> None:
    """Version 2 only: before it, a client without new epochs stays exposed, as with Kafka."""
    node = Node()
    producer = begun(Producer(node, version=2).started(), 0)
    late = Producer(node, version=2, producer_id=producer.producer_id, epoch=producer.epoch)
    assert producer.ended(is_commit=False) is ErrorCode.NONE
    begun(producer, 0).produce(0, b"kept")
    for is_commit in (True, False):
        assert late.ended(is_commit=is_commit) is ErrorCode.PRODUCER_FENCED
    assert producer.ended(is_commit=True) is ErrorCode.NONE
    assert node.visible(0) == [b"kept"]


@pytest.mark.parametrize("end", ["commit", "abort", "timeout", "fence"])
@pytest.mark.parametrize("is_killed", [True, False])
@BOTH
def test_epochs_run_out(version: int, end: str, is_killed: bool) -> None:
    """Over the edge another producer id takes over; nothing is lost, and nobody is unfenced."""
    node = Node()
    node.set_epoch("x", 32_760)
    producer = Producer(node, version=version).started()
    expected, seen = [], {producer.identity}
    for number in range(12):
        begun(producer, 0).produce(0, b"%d" % number)
        before = producer.identity
        box = producer.end(is_commit=True)
        node.run()
        if is_killed:
            node.kill()
            node.run()
            box = producer.end(is_commit=True)
        assert producer.take(box.got) is ErrorCode.NONE
        expected.append(b"%d" % number)
        begun(producer, 0).produce(0, b"not %d" % number)
        if end in ("commit", "abort"):
            assert producer.ended(is_commit=end == "commit") is ErrorCode.NONE
            expected += [b"not %d" % number] * (end == "commit")
            if version == 0:
                producer.started()
        else:
            if end == "timeout":
                node.pass_time(TIMEOUT_MS)
            zombie = Producer(node, version=version, sequences={0: 9})
            zombie.producer_id, zombie.epoch = producer.identity
            producer.started()
            assert isinstance(zombie.produce(0, b"zombie"), ErrorCode)
            fenced = (ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_ID_MAPPING)
            assert zombie.ended(is_commit=True) in fenced
        assert producer.identity != before and producer.identity not in seen
        assert producer.epoch <= EPOCH_LAST
        seen.add(producer.identity)
    assert len({each.producer_id for each in seen}) == 2
    assert node.is_stable() and node.visible(0) == expected


def test_a_transaction_that_nobody_knows_is_aborted_at_start() -> None:
    node = Node()
    producer = begun(Producer(node).started(), 0, offsets=True)
    producer.produce(0, b"orphan")
    producer.commit_offset(1, 3)
    node.run()
    entry = node.transactions.ids.get("x")
    assert entry is not None
    node.transactions.ids.forget(entry)  # as if its record were lost
    node.run()
    node.kill()
    node.run()
    assert node.is_stable()
    assert (node.visible(0), node.fetch(is_stable=True)) == ([], {})


def test_unused_ids_expire_and_open_ones_do_not() -> None:
    config = TransactionsConfig(id_retention_ms=1000, expiry_interval_ms=100)
    node = Node(transactions=config)
    Producer(node, "idle").started()
    begun(Producer(node, "open").started(), 0)
    node.pass_time(2000)
    listed = node.transactions.queries.list_transactions(ListTransactionsRequest())
    assert [each.transactional_id for each in listed.transaction_states] == ["open"]
    node.kill()
    assert [entry.current.transactional_id for entry in node.transactions.ids] == ["open"]


def test_tools_see_what_is_open() -> None:
    node = Node()
    producer = begun(Producer(node).started(), 2, 0)
    asked = DescribeTransactionsRequest(transactional_ids=["x", "y"])
    found, missing = node.transactions.queries.describe(asked).transaction_states
    assert (found.transaction_state, found.topics[0].partitions) == ("Ongoing", [0, 2])
    assert found.producer_id == producer.producer_id
    assert missing.error_code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
    queries = node.transactions.queries
    for request, count in (
        (ListTransactionsRequest(state_filters=["Ongoing", "Odd"]), 1),
        (ListTransactionsRequest(state_filters=["Empty"]), 0),
        (ListTransactionsRequest(producer_id_filters=[producer.producer_id + 1]), 0),
        (ListTransactionsRequest(duration_filter=1), 0),
        (ListTransactionsRequest(transactional_id_pattern="x|y"), 1),
        (ListTransactionsRequest(transactional_id_pattern="y"), 0),
        (ListTransactionsRequest(transactional_id_pattern="("), 0),
    ):
        assert len(queries.list_transactions(request).transaction_states) == count
    assert TransactionState.PREPARE_COMMIT.label == "PrepareCommit"


def test_a_repeated_marker_changes_nothing() -> None:
    node = Node()
    producer = begun(Producer(node).started(), 0)
    producer.produce(0, b"kept")
    assert producer.ended(is_commit=True) is ErrorCode.NONE
    again = append_of_marker(
        Marker.ABORT,
        producer_id=producer.producer_id,
        producer_epoch=producer.epoch,
        coordinator_epoch=0,
        timestamp_ms=0,
    )
    node.log.append(TOPIC, again)
    node.run()
    assert node.visible(0) == [b"kept"]


@pytest.mark.parametrize("is_kill", [True, False])
@BOTH
def test_all_or_none_whenever_the_power_goes(version: int, is_kill: bool) -> None:
    """Cut at every storage call of a producer's life: two transactions over three partitions and an
    offset, the second by another producer."""
    calls, outcomes = 0, set()
    while True:
        calls += 1
        node = Node()
        node.disk.faults = Faults(crash_at=node.disk.calls + calls)
        answered: list[bool] = []
        try:
            for number in range(2):
                _transact(Producer(node, version=version), number)
                answered.append(True)
        except PowerCut:
            pass
        else:
            break
        disk = node.disk
        node.disk = disk.process_kill(Faults()) if is_kill else disk.crash(Rand(calls), Faults())
        node.start()
        node.pass_time(TIMEOUT_MS + 1)
        node.run()
        assert node.is_stable(), f"cut at call {calls}"
        seen = [tuple(node.visible(partition)) for partition in range(3)]
        assert seen[0] == seen[1] == seen[2], f"cut at call {calls}: {seen}"
        assert len(seen[0]) >= len(answered)
        offset = node.fetch(is_stable=True).get(0, (0, "", 0))
        assert offset == (len(seen[0]), "", 0), f"cut at call {calls}: {offset}, {seen}"
        outcomes.add(len(seen[0]))
        Producer(node, version=version).started()
    assert outcomes == {0, 1, 2}


def _transact(producer: Producer, number: int) -> None:
    node = producer.node
    begun(producer.started(), 0, 1, 2, offsets=True)
    results = [producer.produce(partition, b"%d" % number) for partition in range(3)]
    box = producer.commit_offset(0, number + 1)
    node.run()
    assert all(map(written, results)) and code_of(box.got) is ErrorCode.NONE
    assert producer.ended(is_commit=True) is ErrorCode.NONE
