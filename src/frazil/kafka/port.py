"""KafkaPort: the port, with everything behind it."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from dataclasses import dataclass

from frazil.disk import Disk
from frazil.httpd import Auth, ListenAddress, WorkerThreads, bind
from frazil.kafka.access.acl_administration import AclAdministration
from frazil.kafka.access.authorizer import Authorizer
from frazil.kafka.access.guards.rules import guard_all
from frazil.kafka.access.login import Login
from frazil.kafka.access.quota_administration import QuotaAdministration
from frazil.kafka.access.quotas import ClientQuotas
from frazil.kafka.access.user_administration import UserAdministration
from frazil.kafka.access.users import UserFile, Users
from frazil.kafka.allowance import ByteAllowance
from frazil.kafka.broker import NODE_ID, Broker
from frazil.kafka.client_telemetry import ClientTelemetry
from frazil.kafka.connection import KafkaConnection, KafkaConnections
from frazil.kafka.context import NetworkAddress
from frazil.kafka.fetch.commit_watch import CommitWatch
from frazil.kafka.fetch.fetch import Fetch
from frazil.kafka.fetch.offsets import Offsets
from frazil.kafka.groups.coordinator import GroupCoordinator
from frazil.kafka.groups.handlers import GroupHandlers
from frazil.kafka.loop_inbox import LoopInbox
from frazil.kafka.produce.otlp_batches import OtlpBatches, OtlpIntake
from frazil.kafka.produce.produce import Produce
from frazil.kafka.producer_ids import ProducerIds
from frazil.kafka.router import ApiRouter
from frazil.kafka.topics.client_topics import ClientTopics
from frazil.kafka.topics.topic_administration import TopicAdministration
from frazil.kafka.topics.topic_sizes import TopicSizes
from frazil.kafka.topics.topics import LogTopics, Topics
from frazil.kafka.transactions.coordinator import TransactionCoordinator
from frazil.kafka.transactions.handlers import TransactionHandlers
from frazil.log import Log
from frazil.log.produce import warm
from frazil.metrics import Gauge
from frazil.model import Clock, Rand
from frazil.settings import KafkaPortConfig, split_address

BACKLOG = 1024
"""Connections that the kernel holds until they are accepted."""
HANDSHAKE_TIMEOUT_S = 10.0
WORKER_COUNT = 4
"""Threads that check batches and create topics."""
READER_COUNT = 4
"""Threads that read files: slow disks must not hold up producers."""
SWEEP_S = 1.0
"""How often slow and idle connections are looked for."""

IN_FLIGHT = Gauge("frazil.kafka.in_flight.bytes", "Bytes of Kafka requests in flight.")
UNREAD = Gauge(
    "frazil.kafka.unread.bytes", "Bytes of Kafka responses that slow clients have not read."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaUse:
    """What the node's status reports about the port."""

    port: int
    connections: int
    in_flight_bytes: int


class KafkaPort:
    """The open port. Owned by the event loop."""

    def __init__(
        self,
        server: asyncio.Server,
        shared: KafkaConnections,
        watch: CommitWatch,
        groups: GroupCoordinator,
        closing: AsyncExitStack,
    ) -> None:
        self.groups = groups
        self._server = server
        self._shared = shared
        self._watch = watch
        self._closing = closing
        self._sweeping = asyncio.get_running_loop().create_task(self._sweep())

    @classmethod
    async def open(
        cls,
        log: Log,
        disk: Disk,
        config: KafkaPortConfig,
        host: str,
        auth: Auth,
        *,
        clock: Clock,
        rand: Rand,
        otlp: OtlpIntake | None = None,
    ) -> KafkaPort:
        """Listen. Raises `Unavailable` when the address is taken or not ours.

        `otlp` checks what clients write to the topics of telemetry; without it they cannot.

        The loop over records is compiled first, so that no request waits for the compiler.
        """
        warm()
        async with AsyncExitStack() as opened:
            listener = await bind(_listen_address(config, host))
            opened.callback(listener.close)
            workers = WorkerThreads("frazil-kafka", WORKER_COUNT)
            opened.callback(workers.close)
            readers = WorkerThreads("frazil-kafka-read", READER_COUNT)
            opened.callback(readers.close)
            advertised = None
            if config.advertised is not None:
                advertised = NetworkAddress(*split_address(config.advertised))
            broker = Broker.open(disk, rand, advertised)
            topics = await workers.run(ClientTopics, log, disk, rand)
            loop = asyncio.get_running_loop()
            inbox = LoopInbox(loop)
            watch = CommitWatch(log, inbox)
            opened.callback(watch.close)
            producer_ids = ProducerIds.open(disk, log, workers)
            opened.callback(producer_ids.close)
            coordinator = await workers.run(
                GroupCoordinator,
                log,
                config.groups,
                clock=clock,
                rand=rand,
                post=inbox.put,
                topics=topics,
                has_acls=config.acls,
            )
            groups = GroupHandlers(coordinator, NODE_ID, broker.address, workers)
            opened.callback(groups.close)
            transactions = TransactionHandlers(
                await workers.run(
                    TransactionCoordinator,
                    log,
                    config.transactions,
                    coordinator,
                    clock=clock,
                    post=inbox.put,
                ),
                topics,
                producer_ids,
                workers,
            )
            opened.callback(transactions.close)
            users = await workers.run(Users, UserFile(disk, rand, clock), workers)
            login = Login(auth, users if config.scram else None, rand, config.session_lifetime_ms)
            quotas = await workers.run(ClientQuotas, disk, workers, clock)
            authorizer = None
            if config.acls:
                authorizer = await workers.run(Authorizer, disk, workers, config.super_users)
            responses = ByteAllowance(config.response_bytes_max, UNREAD)
            router = ApiRouter()
            otlp_batches = None if otlp is None else OtlpBatches(otlp, clock)
            for family in (
                login,
                UserAdministration(users),
                AclAdministration(authorizer),
                QuotaAdministration(quotas),
                Topics(topics, broker, config, workers),
                TopicAdministration(topics, config, workers, coordinator.topic_deleted),
                TopicSizes(topics),
                Produce(topics, inbox, clock, workers, transactions, otlp_batches),
                Fetch(topics, watch, responses, config, readers),
                Offsets(topics, readers),
                groups,
                transactions,
            ):
                family.register(router)
            if otlp_batches is not None:
                ClientTelemetry(
                    log, otlp_batches, config.telemetry, inbox, workers, clock=clock, rand=rand
                ).register(router)
            if authorizer is not None:
                guard_all(router, authorizer, LogTopics(topics, creates=config.auto_create_topics))
            shared = KafkaConnections(
                router=router,
                config=config,
                requests=ByteAllowance(config.in_flight_bytes_max, IN_FLIGHT),
                responses=responses,
                quotas=quotas,
                needs_login=login.is_required,
            )
            server = await loop.create_server(
                lambda: KafkaConnection(shared),
                sock=listener,
                backlog=BACKLOG,
                ssl=auth.tls,
                ssl_handshake_timeout=None if auth.tls is None else HANDSHAKE_TIMEOUT_S,
            )
            return cls(server, shared, watch, coordinator, opened.pop_all())
        raise AssertionError

    @property
    def port(self) -> int:
        number: int = self._server.sockets[0].getsockname()[1]
        return number

    def use(self) -> KafkaUse:
        return KafkaUse(
            port=self.port,
            connections=len(self._shared.active),
            in_flight_bytes=self._shared.requests.used,
        )

    async def _sweep(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(SWEEP_S)
            now_s = loop.time()
            for connection in list(self._shared.active):
                connection.sweep(now_s)

    async def close(self, grace_s: float) -> None:
        """Stop listening, answer what has arrived for at most `grace_s`, then cut connections."""
        self._shared.is_stopping = True
        self._server.close()
        self._sweeping.cancel()
        connections = list(self._shared.active)
        for connection in connections:
            connection.shut_down()
        self._watch.stop()
        self.groups.stop()
        if connections:
            await asyncio.wait([each.lost for each in connections], timeout=grace_s)
        for connection in list(self._shared.active):
            connection.abort()
        await asyncio.sleep(0)  # so that the transports report their end
        await self._closing.aclose()


def _listen_address(config: KafkaPortConfig, host: str) -> ListenAddress:
    return ListenAddress(
        host=host,
        port=config.port,
        what="the Kafka port",
        host_setting="kafka.host",
        port_setting="kafka.port (--kafka-port N, or 0 for any; kafka.enabled = false opens none)",
    )
