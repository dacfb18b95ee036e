"""TopicAdministration: DeleteTopics, CreatePartitions, DeleteRecords, AlterConfigs and
IncrementalAlterConfigs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from uuid import UUID

from frazil.errors import FrazilError, Malformed, OutOfRange, Unknown
from frazil.httpd import WorkerThreads
from frazil.kafka.broker import NODE_ID
from frazil.kafka.context import RequestContext
from frazil.kafka.error_codes import ErrorCode, error_code
from frazil.kafka.router import ApiRouter
from frazil.kafka.topics.client_topics import ClientTopics
from frazil.kafka.topics.topic_configs import (
    LIST,
    OWN,
    default_config,
    is_topic_config,
    with_configs,
)
from frazil.kafka.topics.topics import TOPIC_RESOURCE, is_protected
from frazil.kafka.wire.messages.alter_configs import AlterConfigsRequest, AlterConfigsResponse
from frazil.kafka.wire.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
)
from frazil.kafka.wire.messages.delete_records import DeleteRecordsRequest, DeleteRecordsResponse
from frazil.kafka.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from frazil.kafka.wire.messages.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from frazil.kafka.wire.schema import UUID_ZERO
from frazil.settings import KafkaPortConfig, TopicConfig

DELETE_TOPICS, DELETE_RECORDS, ALTER_CONFIGS, CREATE_PARTITIONS = 20, 21, 33, 37
INCREMENTAL_ALTER_CONFIGS = 44
SET, DELETE, APPEND, SUBTRACT = 0, 1, 2, 3
"""What to do with a setting. The last two change a list; the only one is cleanup.policy."""
ALL_RECORDS = -1
"""Delete the records up to the last stable offset."""
NO_OFFSET = -1

Outcome = tuple[ErrorCode, str | None]
"""Code and message for the client."""
DONE: Outcome = (ErrorCode.NONE, None)


class TopicAdministration:
    """Owned by the event loop."""

    def __init__(
        self,
        log: ClientTopics,
        config: KafkaPortConfig,
        threads: WorkerThreads,
        on_deleted: Callable[[str], None],
    ) -> None:
        """`on_deleted` is called with the name of each deleted topic, on the event loop."""
        self._log = log
        self._config = config
        self._threads = threads
        self._on_deleted = on_deleted

    def register(self, router: ApiRouter) -> None:
        router.add(DELETE_TOPICS, "1-6", self.delete_topics)
        router.add(DELETE_RECORDS, "0-2", self.delete_records)
        router.add(ALTER_CONFIGS, "0-2", self.alter_configs)
        router.add(CREATE_PARTITIONS, "0-3", self.create_partitions)
        router.add(INCREMENTAL_ALTER_CONFIGS, "0-1", self.incremental_alter_configs)

    async def delete_topics(
        self, request: DeleteTopicsRequest, context: RequestContext
    ) -> DeleteTopicsResponse:
        """Delete topics, by name or id."""
        asked = request.topics or [
            DeleteTopicsRequest.DeleteTopicState(name) for name in request.topic_names
        ]
        return DeleteTopicsResponse(responses=[await self._delete(each) for each in asked])

    async def _delete(
        self, asked: DeleteTopicsRequest.DeleteTopicState
    ) -> DeleteTopicsResponse.DeletableTopicResult:
        try:
            if asked.name is None:
                topic = self._log.topic_by_id(UUID(bytes=asked.topic_id))
            else:
                topic = self._log.topic(asked.name)
        except Unknown as error:
            is_id = asked.name is None
            code = ErrorCode.UNKNOWN_TOPIC_ID if is_id else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            return DeleteTopicsResponse.DeletableTopicResult(
                asked.name, asked.topic_id, code, str(error)
            )
        outcome = _protected(topic.name)
        if outcome is None:
            try:
                await self._threads.run(self._log.delete_topic, topic.name)
                self._on_deleted(topic.name)
                outcome = DONE
            except FrazilError as error:
                outcome = error_code(error), str(error)
        topic_id = topic.topic_id.bytes if outcome == DONE else UUID_ZERO
        return DeleteTopicsResponse.DeletableTopicResult(topic.name, topic_id, *outcome)

    async def create_partitions(
        self, request: CreatePartitionsRequest, context: RequestContext
    ) -> CreatePartitionsResponse:
        """Add partitions to topics, or only check whether they could be."""
        names = Counter(asked.name for asked in request.topics)
        results = []
        for asked in request.topics:
            if names[asked.name] > 1:
                outcome: Outcome = ErrorCode.INVALID_REQUEST, f"{asked.name} is named twice"
            else:
                outcome = await self._grow(asked, is_real=not request.validate_only)
            results.append(
                CreatePartitionsResponse.CreatePartitionsTopicResult(asked.name, *outcome)
            )
        return CreatePartitionsResponse(results=results)

    async def _grow(
        self, asked: CreatePartitionsRequest.CreatePartitionsTopic, *, is_real: bool
    ) -> Outcome:
        try:
            before = len(self._log.topic(asked.name).partitions)
            protected = _protected(asked.name)
            if protected is not None:
                return protected
            if asked.count <= before:
                why = f"topic {asked.name} has {before} partitions; {asked.count} is not more"
                return ErrorCode.INVALID_PARTITIONS, why
            default_config(self._config, asked.count)  # raises if there are too many
            assigned = [each.broker_ids for each in asked.assignments or ()]
            if assigned and assigned != [[NODE_ID]] * (asked.count - before):
                why = f"assign each of the new partitions to broker {NODE_ID} alone"
                return ErrorCode.INVALID_REPLICA_ASSIGNMENT, why
            if is_real:
                await self._threads.run(self._log.add_partitions, asked.name, asked.count)
        except Malformed as error:
            return ErrorCode.INVALID_PARTITIONS, str(error)
        except FrazilError as error:
            return error_code(error), str(error)
        return DONE

    async def delete_records(
        self, request: DeleteRecordsRequest, context: RequestContext
    ) -> DeleteRecordsResponse:
        """Delete the records of partitions below an offset."""
        return DeleteRecordsResponse(
            topics=[
                DeleteRecordsResponse.DeleteRecordsTopicResult(
                    topic.name,
                    [
                        DeleteRecordsResponse.DeleteRecordsPartitionResult(
                            asked.partition_index, *await self._trim(topic.name, asked)
                        )
                        for asked in topic.partitions
                    ],
                )
                for topic in request.topics
            ]
        )

    async def _trim(
        self, topic: str, asked: DeleteRecordsRequest.DeleteRecordsPartition
    ) -> tuple[int, ErrorCode]:
        """Return the new start of a partition, and the code for the client."""
        try:
            partition = self._log.partition(topic, asked.partition_index)
            if is_protected(partition.topic):
                return NO_OFFSET, ErrorCode.TOPIC_AUTHORIZATION_FAILED
            before = asked.offset
            if before == ALL_RECORDS:
                before = partition.view.last_stable_offset
            if before < 0:
                raise OutOfRange(f"offset {before} is negative")
            start = await self._threads.run(
                self._log.delete_records, topic, asked.partition_index, before
            )
        except FrazilError as error:
            return NO_OFFSET, error_code(error)
        return start, ErrorCode.NONE

    async def alter_configs(
        self, request: AlterConfigsRequest, context: RequestContext
    ) -> AlterConfigsResponse:
        """Replace the settings of topics: those that are not named get their default."""
        results = []
        for asked in request.resources:
            unnamed = dict.fromkeys(OWN)
            values = {**unnamed, **{each.name: each.value for each in asked.configs}}
            outcome = await self._alter(
                asked.resource_type, asked.resource_name, values, is_real=not request.validate_only
            )
            results.append(
                AlterConfigsResponse.AlterConfigsResourceResponse(
                    *outcome, asked.resource_type, asked.resource_name
                )
            )
        return AlterConfigsResponse(responses=results)

    async def incremental_alter_configs(
        self, request: IncrementalAlterConfigsRequest, context: RequestContext
    ) -> IncrementalAlterConfigsResponse:
        """Change settings of topics, and leave the others."""
        results = []
        for asked in request.resources:
            outcome = _check_operations(asked)
            if outcome is None:
                outcome = await self._alter(
                    asked.resource_type,
                    asked.resource_name,
                    self._values(asked),
                    is_real=not request.validate_only,
                )
            results.append(
                IncrementalAlterConfigsResponse.AlterConfigsResourceResponse(
                    *outcome, asked.resource_type, asked.resource_name
                )
            )
        return IncrementalAlterConfigsResponse(responses=results)

    def _values(
        self, asked: IncrementalAlterConfigsRequest.AlterConfigsResource
    ) -> dict[str, str | None]:
        """Return the values that settings are to have; None for their default."""
        values: dict[str, str | None] = {}
        for each in asked.configs:
            operation = each.config_operation
            if operation in (APPEND, SUBTRACT) and self._log.has_topic(asked.resource_name):
                own, config = OWN[each.name], self._log.topic(asked.resource_name).config
                before = own.text(getattr(config, own.field))
                values[each.name] = _changed_list(
                    before, each.value or "", is_added=operation == APPEND
                )
            else:
                values[each.name] = None if operation == DELETE else each.value
        return values

    async def _alter(
        self, kind: int, name: str, values: Mapping[str, str | None], *, is_real: bool
    ) -> Outcome:
        """Change settings of a topic. Those without a value get their default."""
        if kind != TOPIC_RESOURCE:
            why = "only settings of topics can be changed; those of the node are in frazil.toml"
            return ErrorCode.INVALID_REQUEST, why
        try:
            config = self._log.topic(name).config
            protected = _protected(name)
            if protected is not None:
                return protected
            if self._log.is_declared(name):
                return ErrorCode.INVALID_CONFIG, f"settings of {name} are those of all telemetry"
            changed = self._changed(config, values)
            if is_real:
                changes = {
                    field: value
                    for field in config.__struct_fields__
                    if (value := getattr(changed, field)) != getattr(config, field)
                }
                await self._threads.run(self._log.alter_topic, name, changes)
        except Malformed as error:
            return ErrorCode.INVALID_CONFIG, str(error)
        except FrazilError as error:
            return error_code(error), str(error)
        return DONE

    def _changed(self, config: TopicConfig, values: Mapping[str, str | None]) -> TopicConfig:
        default = default_config(self._config)
        fields = {name: getattr(config, name) for name in config.__struct_fields__}
        for name, value in values.items():
            if not is_topic_config(name, self._log.config):
                raise Malformed(f"there is no setting {name} for topics")
            if value is None and name in OWN:
                fields[OWN[name].field] = getattr(default, OWN[name].field)
        # Checked together: one default may not go with another value.
        return with_configs(TopicConfig(**fields), values, self._log.config)


def _protected(topic: str) -> Outcome | None:
    """Return the refusal to change a topic that belongs to the node; None if it may be changed."""
    if not is_protected(topic):
        return None
    why = f"topic {topic} belongs to the node and cannot be changed or deleted"
    return ErrorCode.TOPIC_AUTHORIZATION_FAILED, why


def _check_operations(asked: IncrementalAlterConfigsRequest.AlterConfigsResource) -> Outcome | None:
    names = Counter(each.name for each in asked.configs)
    for each in asked.configs:
        if names[each.name] > 1:
            return ErrorCode.INVALID_REQUEST, f"{each.name} is named twice"
        is_list = each.name in OWN and OWN[each.name].kind == LIST
        if each.config_operation not in (SET, DELETE) and not is_list:
            return ErrorCode.INVALID_CONFIG, f"{each.name} is not a list: set its value"
        if each.config_operation not in (SET, DELETE, APPEND, SUBTRACT):
            return ErrorCode.INVALID_REQUEST, f"unknown operation {each.config_operation}"
    return None


def _changed_list(before: str, named: str, *, is_added: bool) -> str:
    """Return a list of values, separated by commas, with others added or removed."""
    values = before.split(",")
    others = [each.strip() for each in named.split(",")]
    if is_added:
        values += [each for each in others if each not in values]
    else:
        values = [each for each in values if each not in others]
    return ",".join(values)
