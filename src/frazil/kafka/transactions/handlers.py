"""TransactionHandlers: connects the coordinator to the port: requests in, responses out, time."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence

from frazil.errors import FrazilError, Unknown
from frazil.httpd import WorkerThreads
from frazil.kafka.context import RequestContext
from frazil.kafka.error_codes import ErrorCode, error_code
from frazil.kafka.groups.alarm import Alarm
from frazil.kafka.producer_ids import ProducerIds
from frazil.kafka.router import ApiRouter, PendingReply
from frazil.kafka.topics.client_topics import ClientTopics
from frazil.kafka.topics.topics import why_read_only
from frazil.kafka.transactions.coordinator import TransactionCoordinator
from frazil.kafka.transactions.markers import OFFSETS
from frazil.kafka.transactions.metadata import IMPLICIT_VERSION, NO_PRODUCER, ProducerEpoch
from frazil.kafka.transactions.partition_producers import describe_producers
from frazil.kafka.wire.messages.add_offsets_to_txn import (
    AddOffsetsToTxnRequest,
    AddOffsetsToTxnResponse,
)
from frazil.kafka.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
)
from frazil.kafka.wire.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
)
from frazil.kafka.wire.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
)
from frazil.kafka.wire.messages.end_txn import EndTxnRequest, EndTxnResponse
from frazil.kafka.wire.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from frazil.kafka.wire.messages.list_transactions import (
    ListTransactionsRequest,
    ListTransactionsResponse,
)
from frazil.kafka.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
)
from frazil.log import BatchHeader
from frazil.model import TopicPartition

PRODUCE = 0
FENCED_VERSIONS = {22: 4, 24: 2, 25: 2, 26: 2}
"""Versions from which on an API answers PRODUCER_FENCED; before, INVALID_PRODUCER_EPOCH."""
ABORTABLE_VERSIONS = {PRODUCE: 11, 28: 4}
"""Versions from which on a client that is in no transaction is told to abort, not to stop."""
IMPLICIT_VERSIONS = {PRODUCE: 12, 26: 5, 28: 5}
"""Versions of the second version of the protocol."""
FEATURE = "transaction.version"


class TransactionHandlers:
    """Owned by the event loop. Responses that wait for the disk are pending, so that a connection
    can send more requests meanwhile."""

    def __init__(
        self,
        coordinator: TransactionCoordinator,
        log: ClientTopics,
        producer_ids: ProducerIds,
        threads: WorkerThreads,
    ) -> None:
        self.coordinator = coordinator
        self._threads = threads
        self._log = log
        self._producer_ids = producer_ids
        self._alarm = Alarm(coordinator.timers)

    def register(self, router: ApiRouter) -> None:
        """Offer the APIs, and finish what was decided before the start."""
        router.add(22, "0-5", self.init_producer_id)
        router.add(24, "0-3", self.add_partitions)
        router.add(25, "0-4", self.add_offsets)
        router.add(26, "0-5", self.end)
        router.add(28, "0-5", self.commit_offsets)
        router.add(61, "0", self.describe_producers)
        router.add(65, "0", self.describe_transactions)
        router.add(66, "0-2", self.list_transactions)
        router.add_feature(FEATURE, IMPLICIT_VERSION)
        self.coordinator.start()

    def close(self) -> None:
        """Run no more timers."""
        self._alarm.close()

    async def init_producer_id(
        self, request: InitProducerIdRequest, context: RequestContext
    ) -> PendingReply | InitProducerIdResponse:
        """Return a producer id: a new one, or that of a transactional id with its next epoch. The
        first transactional producer has the topic of transactions created."""
        journal = self.coordinator.journal
        try:
            if request.transactional_id is not None and not journal.has_topic:
                await self._threads.run(journal.create_topic)
            fresh_id = await self._producer_ids.next()
        except FrazilError as error:
            is_plain = request.transactional_id is None
            code = error_code(error) if is_plain else ErrorCode.COORDINATOR_NOT_AVAILABLE
            return InitProducerIdResponse(error_code=code)
        if request.transactional_id is None:
            return InitProducerIdResponse(producer_id=fresh_id)
        pending = PendingReply()

        def reply(response: InitProducerIdResponse) -> None:
            response.error_code = _fenced(22, context, response.error_code)
            pending.complete(response)

        self.coordinator.initialization.init(request, fresh_id, reply)
        return pending

    async def add_partitions(
        self, request: AddPartitionsToTxnRequest, context: RequestContext
    ) -> PendingReply | AddPartitionsToTxnResponse:
        """Answered when it is durable that the partitions are part of the transaction."""
        topics = request.v3_and_below_topics
        asked = [TopicPartition(t.name, index) for t in topics for index in t.partitions]
        errors = {each: self._why_not(each) for each in asked}
        if any(errors.values()):
            others = ErrorCode.OPERATION_NOT_ATTEMPTED
            return _added_response(topics, {key: code or others for key, code in errors.items()})
        pending = PendingReply()

        def added(error: ErrorCode) -> None:
            code = _fenced(24, context, error)
            pending.complete(_added_response(topics, dict.fromkeys(asked, code)))

        client = ProducerEpoch(
            request.v3_and_below_producer_id, request.v3_and_below_producer_epoch
        )
        stored = [self._log.stored(each) for each in asked]
        self.coordinator.participation.add(
            request.v3_and_below_transactional_id, client, stored, added
        )
        return pending

    def _why_not(self, partition: TopicPartition) -> ErrorCode:
        if why_read_only(partition.topic) is not None:
            return ErrorCode.TOPIC_AUTHORIZATION_FAILED
        try:
            self._log.partition(*partition)
        except FrazilError:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return ErrorCode.NONE

    async def add_offsets(
        self, request: AddOffsetsToTxnRequest, context: RequestContext
    ) -> PendingReply:
        """Answered when it is durable that offsets are part of the transaction."""
        pending = PendingReply()

        def added(error: ErrorCode) -> None:
            pending.complete(AddOffsetsToTxnResponse(error_code=_fenced(25, context, error)))

        client = ProducerEpoch(request.producer_id, request.producer_epoch)
        self.coordinator.participation.add(request.transactional_id, client, [OFFSETS], added)
        return pending

    async def commit_offsets(
        self, request: TxnOffsetCommitRequest, context: RequestContext
    ) -> PendingReply:
        """Answered when the offsets are durable. They count when the transaction is committed."""
        pending = PendingReply()

        def reply(response: TxnOffsetCommitResponse) -> None:
            for topic in response.topics:
                for each in topic.partitions:
                    each.error_code = _abortable(28, context, each.error_code)
            pending.complete(response)

        self.coordinator.participation.commit_offsets(
            request, reply, client_version=_client_version(28, context)
        )
        return pending

    async def end(
        self, request: EndTxnRequest, context: RequestContext
    ) -> PendingReply | EndTxnResponse:
        """Answered when every partition has its marker."""
        client_version = _client_version(26, context)
        fresh_id = NO_PRODUCER
        entry = self.coordinator.ids.get(request.transactional_id)
        if client_version >= IMPLICIT_VERSION and entry is not None and entry.current.is_exhausted:
            try:
                fresh_id = await self._producer_ids.next()
            except FrazilError:
                return EndTxnResponse(error_code=ErrorCode.COORDINATOR_NOT_AVAILABLE)
        pending = PendingReply()

        def reply(response: EndTxnResponse) -> None:
            response.error_code = _fenced(26, context, response.error_code)
            pending.complete(response)

        self.coordinator.completion.end(request, client_version, fresh_id, reply)
        return pending

    async def describe_transactions(
        self, request: DescribeTransactionsRequest, context: RequestContext
    ) -> DescribeTransactionsResponse:
        return self.coordinator.queries.describe(request, self._log.name_of)

    async def list_transactions(
        self, request: ListTransactionsRequest, context: RequestContext
    ) -> ListTransactionsResponse:
        return self.coordinator.queries.list_transactions(request)

    async def describe_producers(
        self, request: DescribeProducersRequest, context: RequestContext
    ) -> DescribeProducersResponse:
        """Return the producers of partitions."""
        return DescribeProducersResponse(
            topics=[
                DescribeProducersResponse.TopicResponse(
                    name=topic.name,
                    partitions=[
                        await self._producers(TopicPartition(topic.name, index))
                        for index in topic.partition_indexes
                    ],
                )
                for topic in request.topics
            ]
        )

    async def _producers(
        self, target: TopicPartition
    ) -> DescribeProducersResponse.PartitionResponse:
        response = DescribeProducersResponse.PartitionResponse(partition_index=target.partition)
        try:
            partition = self._log.partition(*target)
            task = self._log.writer.run(lambda: describe_producers(partition))
            response.active_producers = await asyncio.wrap_future(task)
        except Unknown as error:
            response.error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            response.error_message = str(error)
        return response

    async def add_produced(
        self,
        transactional_id: str,
        header: BatchHeader,
        partitions: Collection[TopicPartition],
    ) -> ErrorCode:
        """Make partitions part of the transaction of a batch, as version 2 of the protocol does
        before the first batch of a partition."""
        joined: asyncio.Future[ErrorCode] = asyncio.get_running_loop().create_future()

        def reply(code: ErrorCode) -> None:
            if not joined.done():  # the client may be gone by then
                joined.set_result(code)

        client = ProducerEpoch(header.producer_id, header.producer_epoch)
        participation = self.coordinator.participation
        participation.add_implicitly(transactional_id, client, partitions, reply)
        error = await joined
        return _RETRIED.get(error, error)

    def check_produced(
        self,
        transactional_id: str | None,
        header: BatchHeader,
        partition: TopicPartition,
        context: RequestContext,
    ) -> ErrorCode:
        """Return why a batch may not be written now; NONE if it may. Submit it before anything
        else happens."""
        error = self.coordinator.participation.check(transactional_id, header, partition)
        return _abortable(PRODUCE, context, error)

    @staticmethod
    def is_implicit(context: RequestContext) -> bool:
        """Return whether a client counts on Produce to add partitions to its transaction."""
        return _client_version(PRODUCE, context) >= IMPLICIT_VERSION


_RETRIED = {
    ErrorCode.PRODUCER_FENCED: ErrorCode.INVALID_PRODUCER_EPOCH,
    ErrorCode.CONCURRENT_TRANSACTIONS: ErrorCode.NOT_ENOUGH_REPLICAS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE: ErrorCode.NOT_ENOUGH_REPLICAS,
}
"""Codes of Produce for those of a coordinator. Clients retry the last."""


Topics = Sequence[AddPartitionsToTxnRequest.AddPartitionsToTxnTopic]


def _added_response(
    topics: Topics, errors: dict[TopicPartition, ErrorCode]
) -> AddPartitionsToTxnResponse:
    return AddPartitionsToTxnResponse(
        results_by_topic_v3_and_below=[
            AddPartitionsToTxnResponse.AddPartitionsToTxnTopicResult(
                name=topic.name,
                results_by_partition=[
                    AddPartitionsToTxnResponse.AddPartitionsToTxnPartitionResult(
                        partition_index=index,
                        partition_error_code=errors[TopicPartition(topic.name, index)],
                    )
                    for index in topic.partitions
                ],
            )
            for topic in topics
        ]
    )


def _client_version(key: int, context: RequestContext) -> int:
    return IMPLICIT_VERSION if context.api_version >= IMPLICIT_VERSIONS[key] else 0


def _fenced(key: int, context: RequestContext, error: int) -> ErrorCode:
    is_old = context.api_version < FENCED_VERSIONS[key]
    if error == ErrorCode.PRODUCER_FENCED and is_old:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    return ErrorCode(error)


def _abortable(key: int, context: RequestContext, error: int) -> ErrorCode:
    is_new = context.api_version >= ABORTABLE_VERSIONS[key]
    if error == ErrorCode.INVALID_TXN_STATE and is_new:
        return ErrorCode.TRANSACTION_ABORTABLE
    return ErrorCode(error)
