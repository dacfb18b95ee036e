"""TransactionCoordinator: all transactions of the node. Synchronous; `handlers` connects it to the
port.

request ──> coordinator ──> journal ──> log          responses wait until what they say is durable
                ^              │
                └── durable ───┘
"""

from __future__ import annotations

from frazil.kafka.groups.coordinator import GroupCoordinator
from frazil.kafka.groups.journal import Journal, Post
from frazil.kafka.groups.timers import GroupTimers
from frazil.kafka.lone_client import LoneClient
from frazil.kafka.transactions.completion import Completion
from frazil.kafka.transactions.expiry import IdExpiry
from frazil.kafka.transactions.initialization import Initialization
from frazil.kafka.transactions.loader import load
from frazil.kafka.transactions.markers import MarkerWriter
from frazil.kafka.transactions.metadata import ProducerEpoch, TransactionState
from frazil.kafka.transactions.participation import Participation
from frazil.kafka.transactions.queries import TransactionQueries
from frazil.kafka.transactions.transactional_ids import TransactionalIds
from frazil.log import Log, Marker, Partition
from frazil.metrics import Counter
from frazil.model import Clock, SteadyTime, TopicPartition
from frazil.settings import TopicConfig, TransactionsConfig

TOPIC = "__transaction_state"
TOPIC_CONFIG = TopicConfig(cleanup="compact")
"""One partition: there is one coordinator."""

RECOVERED = Counter(
    "frazil.kafka.transaction.recovered", "Transactions found at start, by what was done."
)


class TransactionCoordinator:
    """Owned by one thread: it calls every method, and runs what is posted and what is due."""

    def __init__(
        self,
        log: Log,
        config: TransactionsConfig,
        groups: GroupCoordinator,
        *,
        clock: Clock,
        post: Post,
    ) -> None:
        """Read `__transaction_state`, if it exists. Nothing is written before `start`."""
        self._log = log
        self.timers = GroupTimers(clock)
        time = SteadyTime(clock)
        self.journal = Journal(log, time, post, topic=TOPIC, config=TOPIC_CONFIG)
        self.ids = TransactionalIds(
            config, journal=self.journal, timers=self.timers, time=time, lone=LoneClient(clock)
        )
        if self.journal.has_topic:
            load(self.journal.partition, self.ids)
        self._markers = MarkerWriter(log, groups.commits, timers=self.timers, time=time, post=post)
        self.completion = Completion(self.ids, self._markers)
        self.initialization = Initialization(self.ids, self.completion)
        self.participation = Participation(self.ids, self.completion, groups.commits)
        self.queries = TransactionQueries(self.ids)
        self._expiry = IdExpiry(self.ids)

    def start(self) -> None:
        """Finish what was decided before the restart, abort what nobody can end, and watch the
        rest: so the last stable offsets move again without a client."""
        self._abort_unknown()
        for entry in list(self.ids):
            if entry.current.state.is_prepared:
                RECOVERED.add(action="finish")
                self.completion.finish(entry)
            elif entry.current.state is TransactionState.ONGOING:
                RECOVERED.add(action="continue")
                self.completion.watch(entry)
        self._expiry.start()

    def _abort_unknown(self) -> None:
        for topic in self._log.topics():
            for partition in topic.partitions:
                for producer_id in partition.transactions.open_offsets:
                    if not self._is_known(partition, producer_id):
                        self._abort(partition, producer_id)

    def _is_known(self, partition: Partition, producer_id: int) -> bool:
        entry = self.ids.of_producer(producer_id)
        return (
            entry is not None
            and entry.current.state.is_open
            and TopicPartition(partition.topic, partition.index) in entry.current.partitions
        )

    def _abort(self, partition: Partition, producer_id: int) -> None:
        RECOVERED.add(action="abort")
        target = TopicPartition(partition.topic, partition.index)
        producer = ProducerEpoch(producer_id, partition.producers.epoch_of(producer_id))
        self._markers.write(Marker.ABORT, producer, [target], _nothing)


def _nothing() -> None:
    """Nobody waits for this marker."""
