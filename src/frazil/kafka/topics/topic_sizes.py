"""TopicSizes: DescribeLogDirs, from which tools know how many bytes a topic has."""

from __future__ import annotations

from collections.abc import Iterator

from frazil.kafka.context import RequestContext
from frazil.kafka.router import ApiRouter
from frazil.kafka.topics.client_topics import ClientTopics
from frazil.kafka.wire.messages.describe_log_dirs import (
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
)

DESCRIBE_LOG_DIRS = 35
LOG_DIRECTORY = "log"
"""The log has one folder. Its place on the disk is not for clients."""


class TopicSizes:
    """Owned by the event loop."""

    def __init__(self, log: ClientTopics) -> None:
        self._log = log

    def register(self, router: ApiRouter) -> None:
        router.add(DESCRIBE_LOG_DIRS, "1-4", self.describe_log_dirs)

    async def describe_log_dirs(
        self, request: DescribeLogDirsRequest, context: RequestContext
    ) -> DescribeLogDirsResponse:
        """Describe the log's only folder: its limit, and the bytes of partitions."""
        wanted = None
        if request.topics is not None:
            wanted = {each.topic: set(each.partitions) for each in request.topics}
        budget = self._log.budget
        return DescribeLogDirsResponse(
            results=[
                DescribeLogDirsResponse.DescribeLogDirsResult(
                    log_dir=LOG_DIRECTORY,
                    topics=list(self._topics(wanted)),
                    total_bytes=budget.hard_bytes_max,
                    usable_bytes=max(0, budget.hard_bytes_max - budget.used_bytes),
                )
            ]
        )

    def _topics(
        self, wanted: dict[str, set[int]] | None
    ) -> Iterator[DescribeLogDirsResponse.DescribeLogDirsTopic]:
        """Yield the topics asked for, or all. What does not exist is left out."""
        for topic in self._log.topics():
            if wanted is None or topic.name in wanted:
                yield DescribeLogDirsResponse.DescribeLogDirsTopic(
                    topic.name,
                    [
                        DescribeLogDirsResponse.DescribeLogDirsPartition(
                            index, partition.view.size_bytes
                        )
                        for index, partition in enumerate(topic.partitions)
                        if wanted is None or index in wanted[topic.name]
                    ],
                )
