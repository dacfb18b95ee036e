"""The services of the shop and their pods."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from frazil.demo import protobuf
from frazil.model import Rand

NAMESPACE, ENVIRONMENT, SDK_VERSION = "shop", "demo", "1.41.0"
NODES = ("node-a", "node-b", "node-c")
RESOURCE_ATTRIBUTES = 1
"""Field number in a Resource."""


@dataclass(frozen=True, slots=True, eq=False)
class ShopService:
    """One service of the shop."""

    name: str
    language: str
    version: tuple[int, int, int]
    """The first version; each deploy increments it."""
    pod_count: int
    scope: str
    """The instrumentation scope of its spans."""
    port: int
    memory_mb: int


SERVICES = tuple(
    ShopService(*row)
    for row in (
        ("storefront", "nodejs", (5, 12, 0), 2, "@opentelemetry/instrumentation-http", 3000, 310),
        ("gateway", "go", (2, 3, 1), 2, "otelhttp", 8080, 90),
        ("catalogue", "java", (3, 8, 2), 3, "io.opentelemetry.spring-webmvc-6.0", 8080, 720),
        ("cart", "dotnet", (1, 9, 0), 2, "OpenTelemetry.Instrumentation.GrpcNetClient", 7070, 180),
        ("checkout", "go", (1, 7, 4), 2, "otelgrpc", 5050, 110),
        ("payment", "java", (4, 1, 0), 2, "io.opentelemetry.grpc-1.6", 50051, 640),
        ("shipping", "python", (0, 14, 3), 1, "opentelemetry.instrumentation.fastapi", 8080, 150),
        ("recommendation", "python", (2, 0, 5), 2, "opentelemetry.instrumentation.grpc", 9001, 480),
        ("mailer", "python", (1, 2, 0), 1, "opentelemetry.instrumentation.aiokafka", 8080, 130),
    )
)
(
    STOREFRONT,
    GATEWAY,
    CATALOGUE,
    CART,
    CHECKOUT,
    PAYMENT,
    SHIPPING,
    RECOMMENDATION,
    MAILER,
) = SERVICES


@dataclass(slots=True, kw_only=True, eq=False)
class Pod:
    """A running instance of a service, with its OTLP resource."""

    service: ShopService
    index: int
    version: tuple[int, int, int]
    name: str
    started_ns: int
    resource: bytes = field(repr=False)
    scope: bytes = field(repr=False)
    slowness: float = 1.0
    """Factor on all durations in this pod."""
    served_count: int = 0
    """Requests since the gauges were read."""


class Fleet:
    """All running pods. Owned by Traffic."""

    def __init__(self, rand: Rand, started_ns: int) -> None:
        self._rand = rand
        self._pods = {
            service.name: [
                self._start(service, index, service.version, started_ns)
                for index in range(service.pod_count)
            ]
            for service in SERVICES
        }

    def pods(self) -> Iterator[Pod]:
        for service in SERVICES:
            yield from self._pods[service.name]

    def of(self, service: ShopService) -> list[Pod]:
        return self._pods[service.name]

    def pick(self, service: ShopService) -> Pod:
        """Return a random pod of a service, like a load balancer."""
        pods = self._pods[service.name]
        return pods[int(self._rand.random() * len(pods))]

    def restart(self, pod: Pod, version: tuple[int, int, int], at_ns: int) -> Pod:
        """Replace a pod with a new one."""
        replacement = self._start(pod.service, pod.index, version, at_ns)
        self._pods[pod.service.name][pod.index] = replacement
        return replacement

    def _start(
        self, service: ShopService, index: int, version: tuple[int, int, int], at_ns: int
    ) -> Pod:
        chance = self._rand.getrandbits(60)
        name = f"{service.name}-{chance >> 20 & 0xFFFFFFFFF:09x}-{chance & 0xFFFFF:05x}"
        resource: dict[str, str | int] = {
            "service.name": service.name,
            "service.namespace": NAMESPACE,
            "service.version": ".".join(map(str, version)),
            "service.instance.id": name,
            "deployment.environment.name": ENVIRONMENT,
            "host.name": NODES[index % len(NODES)],
            "k8s.namespace.name": NAMESPACE,
            "k8s.deployment.name": service.name,
            "k8s.pod.name": name,
            "k8s.container.name": service.name,
            "process.pid": 1,
            "telemetry.sdk.name": "opentelemetry",
            "telemetry.sdk.language": service.language,
            "telemetry.sdk.version": SDK_VERSION,
        }
        return Pod(
            service=service,
            index=index,
            version=version,
            name=name,
            started_ns=at_ns,
            resource=protobuf.field(1, protobuf.attributes(RESOURCE_ATTRIBUTES, resource)),
            scope=protobuf.field(
                1, protobuf.text(1, service.scope) + protobuf.text(2, SDK_VERSION)
            ),
        )
