"""Topics: Metadata, CreateTopics, DescribeConfigs and DescribeCluster."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from uuid import UUID

from frazil.errors import Conflict, FrazilError, Malformed, Overloaded, Unknown
from frazil.httpd import WorkerThreads
from frazil.kafka.broker import NODE_ID, Broker
from frazil.kafka.context import RequestContext
from frazil.kafka.error_codes import ErrorCode, error_code
from frazil.kafka.router import ApiRouter
from frazil.kafka.topics.client_topics import TELEMETRY, ClientTopics
from frazil.kafka.topics.topic_configs import (
    ConfigEntry,
    broker_entries,
    config_entries,
    default_config,
    split_otlp,
    with_configs,
)
from frazil.kafka.wire.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from frazil.kafka.wire.messages.describe_cluster import (
    DescribeClusterRequest,
    DescribeClusterResponse,
)
from frazil.kafka.wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResponse,
)
from frazil.kafka.wire.messages.metadata import MetadataRequest, MetadataResponse
from frazil.kafka.wire.schema import UUID_ZERO
from frazil.log import DEAD_LETTERS, LEADER_EPOCH, Topic, check_name
from frazil.model import Signal
from frazil.settings import KafkaPortConfig, TopicConfig

METADATA, CREATE_TOPICS, DESCRIBE_CONFIGS, DESCRIBE_CLUSTER = 3, 19, 32, 60

INTERNAL_PREFIX = "__"
"""Topics that only the node itself writes to."""

TOPIC_RESOURCE, BROKER_RESOURCE = 2, 4
TOPIC_SOURCE, BROKER_SOURCE, DEFAULT_SOURCE = 1, 4, 5
"""Kafka's numbers for where a setting comes from."""
NOT_ASKED = -2147483648
TOPIC_OPERATIONS = 0b1101_1111_1000
"""Read, write, create, delete, alter, describe, describe and alter settings."""
CLUSTER_OPERATIONS = 0b1_1111_1010_0000
"""Create, alter, describe, act, describe and alter settings, write idempotently."""
BROKER_ENDPOINTS = 1


def why_read_only(topic: str) -> str | None:
    """Return why clients cannot write to a topic; None if they can."""
    if topic == DEAD_LETTERS or topic.startswith(INTERNAL_PREFIX):
        return f"topic {topic} is internal: only the node writes to it"
    return None


def is_protected(topic: str) -> bool:
    """Return whether a topic belongs to the node: clients cannot create, change or delete it."""
    return topic in TELEMETRY or why_read_only(topic) is not None


@dataclass(frozen=True, slots=True)
class LogTopics:
    """What ACLs need to know of the topics."""

    log: ClientTopics
    creates: bool
    """Whether Metadata creates topics."""

    def has(self, name: str) -> bool:
        return self.log.has_topic(name)

    def name_of(self, topic_id: bytes) -> str | None:
        try:
            return self.log.topic_by_id(UUID(bytes=bytes(topic_id))).name
        except Unknown:
            return None


class Topics:
    """Owned by the event loop."""

    def __init__(
        self,
        log: ClientTopics,
        broker: Broker,
        config: KafkaPortConfig,
        threads: WorkerThreads,
    ) -> None:
        self._log = log
        self._broker = broker
        self._config = config
        self._threads = threads

    def register(self, router: ApiRouter) -> None:
        router.add(METADATA, "0-13", self.metadata)
        router.add(CREATE_TOPICS, "2-7", self.create_topics)
        router.add(DESCRIBE_CONFIGS, "1-4", self.describe_configs)
        router.add(DESCRIBE_CLUSTER, "0-2", self.describe_cluster)

    async def metadata(self, request: MetadataRequest, context: RequestContext) -> MetadataResponse:
        """Describe the broker and topics. Topics may be created."""
        address = self._broker.address(context.connection)
        has_operations = request.include_topic_authorized_operations
        is_all = request.topics is None or (context.api_version == 0 and not request.topics)
        if is_all:
            topics = [self._described(topic) for topic in self._log.topics()]
        else:
            topics = [
                await self._named(asked, may_create=request.allow_auto_topic_creation)
                for asked in request.topics or ()
            ]
        if has_operations:
            for topic in topics:
                topic.topic_authorized_operations = TOPIC_OPERATIONS
        return MetadataResponse(
            brokers=[MetadataResponse.MetadataResponseBroker(NODE_ID, *address)],
            cluster_id=self._broker.cluster_id,
            controller_id=NODE_ID,
            topics=topics,
            cluster_authorized_operations=CLUSTER_OPERATIONS
            if request.include_cluster_authorized_operations
            else NOT_ASKED,
        )

    async def _named(
        self, asked: MetadataRequest.MetadataRequestTopic, *, may_create: bool
    ) -> MetadataResponse.MetadataResponseTopic:
        name = asked.name
        if name is None:
            try:
                return self._described(self._log.topic_by_id(UUID(bytes=asked.topic_id)))
            except Unknown:
                return MetadataResponse.MetadataResponseTopic(
                    ErrorCode.UNKNOWN_TOPIC_ID, None, asked.topic_id
                )
        try:
            check_name(name, "topic")
        except Malformed:
            return MetadataResponse.MetadataResponseTopic(ErrorCode.INVALID_TOPIC_EXCEPTION, name)
        if not self._log.has_topic(name):
            if not may_create or not self._config.auto_create_topics or is_protected(name):
                return MetadataResponse.MetadataResponseTopic(
                    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, name
                )
            try:
                await self._create(name, default_config(self._config))
            except Conflict:
                pass  # another client has created it with other settings
            except FrazilError as error:
                return MetadataResponse.MetadataResponseTopic(_create_code(error), name)
        try:
            return self._described(self._log.topic(name))
        except Unknown:  # deleted meanwhile
            return MetadataResponse.MetadataResponseTopic(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, name
            )

    async def _create(self, name: str, config: TopicConfig) -> Topic:
        return await self._threads.run(self._log.create_topic, name, config)

    def _described(self, topic: Topic) -> MetadataResponse.MetadataResponseTopic:
        return MetadataResponse.MetadataResponseTopic(
            name=topic.name,
            topic_id=topic.topic_id.bytes,
            is_internal=topic.name.startswith(INTERNAL_PREFIX),
            partitions=[
                MetadataResponse.MetadataResponsePartition(
                    partition_index=index,
                    leader_id=NODE_ID,
                    leader_epoch=LEADER_EPOCH,
                    replica_nodes=[NODE_ID],
                    isr_nodes=[NODE_ID],
                )
                for index in range(len(topic.partitions))
            ],
        )

    async def create_topics(
        self, request: CreateTopicsRequest, context: RequestContext
    ) -> CreateTopicsResponse:
        """Create topics, or only check whether they could be."""
        names = Counter(asked.name for asked in request.topics)
        results = []
        for asked in request.topics:
            try:
                if names[asked.name] > 1:
                    raise _Refused(ErrorCode.INVALID_REQUEST, f"{asked.name} is named twice")
                results.append(await self._create_one(asked, is_real=not request.validate_only))
            except _Refused as refused:
                results.append(_refusal(asked.name, refused.code, str(refused)))
            except FrazilError as error:
                results.append(_refusal(asked.name, _create_code(error), str(error)))
        return CreateTopicsResponse(topics=results)

    async def _create_one(
        self, asked: CreateTopicsRequest.CreatableTopic, *, is_real: bool
    ) -> CreateTopicsResponse.CreatableTopicResult:
        name = asked.name
        try:
            check_name(name, "topic")
        except Malformed as error:
            raise _Refused(ErrorCode.INVALID_TOPIC_EXCEPTION, str(error)) from None
        if self._log.has_topic(name):
            raise _Refused(ErrorCode.TOPIC_ALREADY_EXISTS, f"topic {name} exists")
        if is_protected(name):
            why = f"topic {name} belongs to the node: it creates it itself"
            raise _Refused(ErrorCode.INVALID_TOPIC_EXCEPTION, why)
        config, signal = self._config_of(asked)
        topic_id = UUID_ZERO
        if is_real:
            if signal is None:
                topic = await self._create(name, config)
            else:
                topic = await self._threads.run(self._log.declare, name, signal, config.partitions)
            config, topic_id = topic.config, topic.topic_id.bytes
        entries = config_entries(config, self._config, self._log.config, signal)
        return CreateTopicsResponse.CreatableTopicResult(
            name=name,
            topic_id=topic_id,
            error_message=None,
            num_partitions=config.partitions,
            replication_factor=1,
            configs=[
                CreateTopicsResponse.CreatableTopicConfigs(
                    entry.name, entry.value, False, _source(entry)
                )
                for entry in entries
            ],
        )

    def _config_of(
        self, asked: CreateTopicsRequest.CreatableTopic
    ) -> tuple[TopicConfig, Signal | None]:
        """Return the settings of a new topic, and its signal if it is declared as OTLP."""
        partitions: int | None = None if asked.num_partitions == -1 else asked.num_partitions
        if asked.assignments:
            partitions = _assigned(asked.assignments)
        elif asked.replication_factor not in (-1, 1):
            raise _Refused(
                ErrorCode.INVALID_REPLICATION_FACTOR,
                f"replication factor {asked.replication_factor}; this node is the only broker: "
                "use 1, or -1 for the default",
            )
        try:
            config = default_config(self._config, partitions)
        except Malformed as error:
            raise _Refused(ErrorCode.INVALID_PARTITIONS, str(error)) from None
        try:
            signal, configs = split_otlp({c.name: c.value for c in asked.configs})
            return with_configs(config, configs, self._log.config), signal
        except Malformed as error:
            raise _Refused(ErrorCode.INVALID_CONFIG, str(error)) from None

    async def describe_configs(
        self, request: DescribeConfigsRequest, context: RequestContext
    ) -> DescribeConfigsResponse:
        """List the settings of topics and of the broker."""
        return DescribeConfigsResponse(
            results=[
                self._resource(asked, has_synonyms=request.include_synonyms)
                for asked in request.resources
            ]
        )

    def _resource(
        self, asked: DescribeConfigsRequest.DescribeConfigsResource, *, has_synonyms: bool
    ) -> DescribeConfigsResponse.DescribeConfigsResult:
        kind, name = asked.resource_type, asked.resource_name
        code, message = ErrorCode.NONE, None
        entries: Iterable[ConfigEntry] = ()
        if kind == TOPIC_RESOURCE and self._log.has_topic(name):
            config = self._log.topic(name).config
            signal = self._log.signal_of(name)
            entries = config_entries(config, self._config, self._log.config, signal)
        elif kind == TOPIC_RESOURCE:
            code, message = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {name}"
        elif kind == BROKER_RESOURCE and name in ("", str(NODE_ID)):
            entries = broker_entries(self._config, self._log.config)
        else:
            code, message = ErrorCode.INVALID_REQUEST, f"there is no resource {name} of that kind"
        wanted = asked.configuration_keys
        return DescribeConfigsResponse.DescribeConfigsResult(
            error_code=code,
            error_message=message,
            resource_type=kind,
            resource_name=name,
            configs=[
                _config_result(entry, is_topic=kind == TOPIC_RESOURCE, has_synonyms=has_synonyms)
                for entry in entries
                if wanted is None or entry.name in wanted
            ],
        )

    async def describe_cluster(
        self, request: DescribeClusterRequest, context: RequestContext
    ) -> DescribeClusterResponse:
        """Describe the broker."""
        if request.endpoint_type != BROKER_ENDPOINTS:
            return DescribeClusterResponse(
                error_code=ErrorCode.INVALID_REQUEST,
                error_message="there are no controllers apart from the broker",
                cluster_id=self._broker.cluster_id,
            )
        host, port = self._broker.address(context.connection)
        return DescribeClusterResponse(
            cluster_id=self._broker.cluster_id,
            controller_id=NODE_ID,
            brokers=[DescribeClusterResponse.DescribeClusterBroker(NODE_ID, host, port)],
            cluster_authorized_operations=CLUSTER_OPERATIONS
            if request.include_cluster_authorized_operations
            else NOT_ASKED,
        )


class _Refused(Exception):
    """A topic that cannot be created, with the code for the client."""

    def __init__(self, code: ErrorCode, message: str) -> None:
        super().__init__(message)
        self.code = code


def _refusal(name: str, code: ErrorCode, message: str) -> CreateTopicsResponse.CreatableTopicResult:
    return CreateTopicsResponse.CreatableTopicResult(
        name=name, error_code=code, error_message=message
    )


def _create_code(error: FrazilError) -> ErrorCode:
    """Return the code for a topic that the log did not create."""
    if isinstance(error, Malformed):
        return ErrorCode.INVALID_PARTITIONS  # more than the disk space of the log allows
    if isinstance(error, Conflict):
        return ErrorCode.TOPIC_ALREADY_EXISTS
    if isinstance(error, Overloaded):
        return ErrorCode.KAFKA_STORAGE_ERROR
    return error_code(error)


def _assigned(assignments: list[CreateTopicsRequest.CreatableReplicaAssignment]) -> int:
    """Return the number of partitions of an assignment to brokers."""
    indexes = sorted(each.partition_index for each in assignments)
    if indexes != list(range(len(indexes))):
        raise _Refused(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT, "partitions must be numbered from 0 without gaps"
        )
    if any(each.broker_ids != [NODE_ID] for each in assignments):
        raise _Refused(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT, f"the only broker is {NODE_ID}; assign it alone"
        )
    return len(indexes)


def _source(entry: ConfigEntry) -> int:
    return DEFAULT_SOURCE if entry.is_default else TOPIC_SOURCE


def _config_result(
    entry: ConfigEntry, *, is_topic: bool, has_synonyms: bool
) -> DescribeConfigsResponse.DescribeConfigsResourceResult:
    source = _source(entry) if is_topic else BROKER_SOURCE
    synonyms = []
    if has_synonyms:
        synonyms.append(
            DescribeConfigsResponse.DescribeConfigsSynonym(entry.name, entry.value, source)
        )
    return DescribeConfigsResponse.DescribeConfigsResourceResult(
        name=entry.name,
        value=entry.value,
        read_only=not is_topic,
        config_source=source,
        synonyms=synonyms,
        config_type=entry.kind,
        documentation=None,
    )
