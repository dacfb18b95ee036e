"""Transactions against a small model, with kills and power cuts between and within steps.

What was committed is visible in every partition, with its offset, as soon as that is answered; what
was aborted, or was never ended, is nowhere; a fenced producer changes nothing; and once clients are
silent every partition is decided.
"""

from __future__ import annotations

from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from frazil.kafka.error_codes import ErrorCode
from frazil.kafka.wire.messages.end_txn import EndTxnResponse
from frazil.kafka.wire.messages.txn_offset_commit import TxnOffsetCommitResponse
from frazil.log import AppendResult
from frazil.model import Rand
from tests.kafka.groups.build import PARTITIONS, TOPIC, Box
from tests.kafka.transactions.build import TIMEOUT_MS, Node, Producer, code_of, written
from tests.sim.disk import Faults, PowerCut, SimDisk

WHICH = st.integers(0, 3)
PARTITION = st.integers(0, PARTITIONS - 1)
PARTITION_SET = st.sets(PARTITION, min_size=1)


@dataclass(eq=False)
class Transaction:
    """What a client knows of one of its transactions."""

    number: int
    id_number: int
    batches: list[tuple[int, bytes, Future[AppendResult]]] = field(default_factory=list)
    offsets: list[tuple[int, Box[TxnOffsetCommitResponse]]] = field(default_factory=list)
    is_commit_sent: bool = False
    is_committed: bool = False
    is_aborted: bool = False

    def acknowledged(self) -> set[tuple[int, bytes]]:
        return {(index, value) for index, value, result in self.batches if written(result)}

    def sent(self) -> set[tuple[int, bytes]]:
        return {(index, value) for index, value, _ in self.batches}

    def acknowledged_offset(self) -> int | None:
        """The last one that was stored; None if none was."""
        stored = [n for n, box in self.offsets if box.value and code_of(box.value) == 0]
        return max(stored, default=None)


@dataclass(eq=False)
class Client:
    """A producer, with the transaction it is in and the end that it waits for."""

    producer: Producer
    id_number: int
    transaction: Transaction | None = None
    ending: Box[EndTxnResponse] | None = None
    is_commit: bool = False


class TransactionMachine(RuleBasedStateMachine):
    """Four clients, two for each of two transactional ids: one of the two is a zombie."""

    @initialize(
        model=st.sampled_from(["ext4", "weak"]),
        versions=st.tuples(*[st.sampled_from([0, 2])] * 4),
        epoch=st.sampled_from([-1, 32_760, 32_764]),
    )
    def begin(self, model: str, versions: tuple[int, ...], epoch: int) -> None:
        self.node = Node(SimDisk(model="weak" if model == "weak" else "ext4"))
        if epoch >= 0:
            self.node.set_epoch("x0", epoch)
            self.node.set_epoch("x1", epoch)
        self.clients = [
            Client(Producer(self.node, f"x{number % 2}", version), number % 2)
            for number, version in enumerate(versions)
        ]
        self.transactions: list[Transaction] = []
        self.number = 0

    @rule(which=WHICH)
    def start_again(self, which: int) -> None:
        """A client starts anew. It takes the id from the other one, which does not know."""
        client = self.clients[which]
        client.transaction = client.ending = None
        for _ in range(3):
            box = client.producer.init()
            self.node.run()
            if client.producer.take(box.got) is ErrorCode.NONE:
                break
        self._look_all()

    @rule(which=WHICH, partitions=PARTITION_SET, offsets=st.booleans())
    def write(self, which: int, partitions: set[int], offsets: bool) -> None:
        """A client begins a transaction, or extends the one it is in."""
        client = self.clients[which]
        if client.producer.producer_id < 0:
            self.start_again(which)
        if client.ending is not None:
            self.repeat_end(which)
            return
        box = client.producer.add(*sorted(partitions), offsets=offsets)
        self.node.run()
        self._look_all()
        if box.value is not ErrorCode.NONE:
            client.producer.producer_id = -1  # fenced: it starts anew next time
            return
        if client.transaction is None:
            client.transaction = Transaction(len(self.transactions), client.id_number)
            self.transactions.append(client.transaction)
        for partition in partitions:
            self._produce(client, client.transaction, partition)
        if offsets:
            self.number += 1
            stored = client.producer.commit_offset(client.id_number, self.number)
            client.transaction.offsets.append((self.number, stored))

    @rule(which=WHICH, partitions=PARTITION_SET, offsets=st.booleans())
    def write_and_commit(self, which: int, partitions: set[int], offsets: bool) -> None:
        """A client sends all of a transaction, and asks for the end; `run` lets it happen."""
        self.write(which, partitions, offsets)
        self.run()
        self.end(which, True)

    @rule(which=WHICH, partitions=PARTITION_SET, offsets=st.booleans())
    def write_and_abort(self, which: int, partitions: set[int], offsets: bool) -> None:
        self.write(which, partitions, offsets)
        self.end(which, False)

    def _produce(self, client: Client, transaction: Transaction, partition: int) -> None:
        self.number += 1
        value = b"%d:%d" % (transaction.number, self.number)
        result = client.producer.produce(partition, value)
        if isinstance(result, Future):
            transaction.batches.append((partition, value, result))

    @rule(which=WHICH, partition=PARTITION)
    def produce(self, which: int, partition: int) -> None:
        """A client sends a batch, wherever it is; a zombie, too."""
        client = self.clients[which]
        if client.producer.producer_id >= 0:
            transaction = client.transaction or Transaction(-1, client.id_number)
            self._produce(client, transaction, partition)
            assert transaction.number >= 0 or not transaction.batches, "written outside of any"

    @rule(which=WHICH, is_commit=st.booleans())
    def end(self, which: int, is_commit: bool) -> None:
        """A client ends its transaction once all its batches are acknowledged."""
        client = self.clients[which]
        transaction = client.transaction
        if transaction is None or client.ending is not None:
            return
        if is_commit and len(transaction.acknowledged()) != len(transaction.batches):
            is_commit = False
        client.is_commit = is_commit
        transaction.is_commit_sent |= is_commit
        client.ending = client.producer.end(is_commit=is_commit)
        self._look(client)

    @rule(which=WHICH)
    def repeat_end(self, which: int) -> None:
        """The answer was lost, or is late: a client asks again."""
        client = self.clients[which]
        if client.ending is not None and client.ending.value is None:
            client.ending = client.producer.end(is_commit=client.is_commit)
            self._look(client)

    @rule()
    def run(self) -> None:
        self.node.run()
        self._look_all()

    @rule(ms=st.sampled_from([100, TIMEOUT_MS // 2, TIMEOUT_MS]))
    def pass_time(self, ms: int) -> None:
        self.node.pass_time(ms)
        self._look_all()

    @rule()
    def compact(self) -> None:
        self.node.run()
        self._look_all()
        self.node.log.maintain()

    @rule()
    def kill(self) -> None:
        self._look_all()
        self.node.kill()

    @rule(seed=st.integers(0, 2**32 - 1), calls=st.integers(0, 8))
    def cut_power(self, seed: int, calls: int) -> None:
        """Cut the power now, or in the middle of the next storage calls."""
        if calls:
            self.node.disk.faults = Faults(crash_at=self.node.disk.calls + calls)
            with suppress(PowerCut):
                self.node.run()
        self._look_all()
        self.node.disk = self.node.disk.crash(Rand(seed), Faults())
        self.node.start()

    @rule()
    def fall_silent(self) -> None:
        """All clients stop; what is open times out. Everything is decided then."""
        self.node.pass_time(TIMEOUT_MS + 1)
        self._look_all()
        self.node.run()
        assert self.node.is_stable()
        visible = self._visible()
        offsets = {key: value[0] for key, value in self.node.fetch(is_stable=True).items()}
        for each in self.transactions:
            self._check(each, visible, offsets)
        for id_number in range(2):
            allowed = {
                number
                for each in self.transactions
                for number, _ in each.offsets
                if each.id_number == id_number and each.is_commit_sent and not each.is_aborted
            }
            assert offsets.get(id_number) in {None, *allowed}
        for client in self.clients:
            client.transaction = client.ending = None
            client.producer.producer_id = -1

    def _check(
        self, each: Transaction, visible: set[tuple[int, bytes]], offsets: dict[int, int]
    ) -> None:
        found = each.sent() & visible
        offset, stored = each.acknowledged_offset(), offsets.get(each.id_number, -1)
        if each.is_aborted or not each.is_commit_sent:
            assert not found, f"{each} was not committed"
            assert stored not in {number for number, _ in each.offsets}
        elif each.is_committed or found:
            assert each.acknowledged() <= found, f"{each} is torn"
            assert offset is None or stored >= offset, f"{each} lost its offset"
        elif each.acknowledged() and offset is not None:
            assert stored not in {number for number, _ in each.offsets}, f"{each} is torn"

    def _visible(self) -> set[tuple[int, bytes]]:
        seen = [(i, value) for i in range(PARTITIONS) for value in self.node.visible(i)]
        assert len(seen) == len(set(seen)), "a record is there twice"
        return set(seen)

    def _decided(self, each: Transaction) -> set[tuple[int, bytes]]:
        """What no older open transaction hides."""
        partitions = self.node.log.topic(TOPIC).partitions
        return {
            (index, value)
            for index, value, result in each.batches
            if written(result)
            and result.result().base_offset < partitions[index].view.last_stable_offset
        }

    def _look_all(self) -> None:
        for client in self.clients:
            self._look(client)

    def _look(self, client: Client) -> None:
        """Take the answer of an end."""
        if client.ending is None or client.ending.value is None:
            return
        response, client.ending = client.ending.value, None
        code = client.producer.take(response)
        transaction = client.transaction
        if transaction is None:
            return
        if code is ErrorCode.NONE:
            client.transaction = None
            transaction.is_committed |= client.is_commit
            transaction.is_aborted |= not client.is_commit
            assert transaction.is_committed != transaction.is_aborted
        elif code not in (
            ErrorCode.CONCURRENT_TRANSACTIONS,
            ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ):
            client.transaction = None  # fenced, or it timed out: the client gives up

    @invariant()
    def answered_is_visible_and_aborted_is_not(self) -> None:
        if not hasattr(self, "node"):
            return
        visible = self._visible()
        for each in self.transactions:
            if each.is_committed:
                assert self._decided(each) <= visible, f"{each} was committed"
            elif not each.is_commit_sent or each.is_aborted:
                assert not each.sent() & visible, f"{each} was not committed"


TransactionMachine.TestCase.settings = settings(
    max_examples=60, stateful_step_count=30, deadline=None
)
TestTransactions = TransactionMachine.TestCase
