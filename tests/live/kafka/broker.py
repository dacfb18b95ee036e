"""A real Apache Kafka broker as a separate process: one node, KRaft, on loopback."""

from __future__ import annotations

import ctypes
import signal
import socket
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

from confluent_kafka import IsolationLevel, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic, OffsetSpec

from tests.live.kafka.jars import class_path

CLUSTER_ID = "AAAAAAAAAAAAAAAAAAAAAQ"
START_SECONDS_MAX = 120
STOP_SECONDS_MAX = 60
ASK_SECONDS_MAX = 30.0
HEAP = "-Xmx384m"
QUICK = ["-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", HEAP]
"""JVM options for a short-lived process on a small machine."""
OUTPUT_CHARACTERS = 4000
PR_SET_PDEATHSIG = 1
"""From Linux's <sys/prctl.h>."""

SETTINGS = """\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT
log.dirs={folder}
auto.create.topics.enable=false
offsets.topic.num.partitions=1
offsets.topic.replication.factor=1
transaction.state.log.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
group.initial.rebalance.delay.ms=0
log.initial.task.delay.ms=500
log.retention.check.interval.ms=500
"""


class KafkaBroker:
    """One broker on one folder, with the same ports after each start. Owned by the test."""

    def __init__(
        self,
        folder: Path,
        *,
        jvm: Sequence[str] = QUICK,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        """`settings` are added to those above; a name that is there already has the new value."""
        folder.mkdir(parents=True)
        self._jvm = jvm
        self._output = folder / "output.txt"
        self._settings = folder / "server.properties"
        port, controller = _free_ports(2)
        self.address = f"127.0.0.1:{port}"
        common = SETTINGS.format(port=port, controller=controller, folder=folder / "data")
        added = "".join(f"{name}={value}\n" for name, value in (settings or {}).items())
        self._settings.write_text(common + added, encoding="utf-8")
        format_storage = ["format", "-t", CLUSTER_ID, "-c", str(self._settings)]
        subprocess.run(
            ["java", *QUICK, "-cp", class_path(), "kafka.tools.StorageTool", *format_storage],
            check=True,
            capture_output=True,
            timeout=START_SECONDS_MAX,
        )
        self.start()

    def start(self) -> None:
        """Start or restart the process, and return once it responds.

        The broker ends with the calling thread.
        """
        command = ["java", *self._jvm, "-cp", class_path(), "kafka.Kafka", str(self._settings)]
        with self._output.open("ab") as output:
            self.process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                preexec_fn=_die_with_parent,
            )
        deadline = time.monotonic() + START_SECONDS_MAX
        while not self._answers():
            code = self.process.poll()
            if code is not None or time.monotonic() > deadline:
                self.kill()
                raise AssertionError(f"the broker is not up (code {code}): {self.output()}")

    def _answers(self) -> bool:
        try:
            self.admin().list_topics(timeout=1)
        except KafkaException:
            return False
        return True

    def admin(self) -> AdminClient:
        return AdminClient({"bootstrap.servers": self.address, "log_level": 2})

    def create_topic(self, name: str, partitions: int = 1, **config: str) -> None:
        """Create a topic and wait for it. Underscores in names of settings stand for dots."""
        settings = {key.replace("_", "."): value for key, value in config.items()}
        new = NewTopic(name, partitions, 1, config=settings)
        admin = self.admin()  # must outlive the response
        admin.create_topics([new])[name].result(ASK_SECONDS_MAX)

    def delete_topic(self, name: str) -> None:
        """Delete a topic and wait until it is no longer listed."""
        admin = self.admin()
        admin.delete_topics([name])[name].result(ASK_SECONDS_MAX)
        deadline = time.monotonic() + ASK_SECONDS_MAX
        while name in admin.list_topics(timeout=ASK_SECONDS_MAX).topics:
            assert time.monotonic() < deadline, f"{name} is still there"
            time.sleep(0.05)

    def wait_until_decided(self, topic: str, partitions: int = 1) -> None:
        """Wait until no transaction is open.

        Markers are written a moment after a commit or abort was acknowledged, so records just
        committed may not be readable yet.
        """
        admin = self.admin()
        latest = dict.fromkeys(
            [TopicPartition(topic, partition) for partition in range(partitions)],
            OffsetSpec.latest(),
        )
        deadline = time.monotonic() + ASK_SECONDS_MAX
        while True:
            stable, written = (
                [future.result(ASK_SECONDS_MAX).offset for future in futures.values()]
                for futures in (
                    admin.list_offsets(latest, isolation_level=level)
                    for level in (IsolationLevel.READ_COMMITTED, IsolationLevel.READ_UNCOMMITTED)
                )
            )
            if stable == written:
                return
            assert time.monotonic() < deadline, f"{topic} is stable up to {stable} of {written}"
            time.sleep(0.02)

    def output(self) -> str:
        """Return the end of the process's output."""
        return self._output.read_text(errors="replace")[-OUTPUT_CHARACTERS:]

    def kill(self) -> None:
        """Send SIGKILL. Harmless when the process has ended."""
        self.process.kill()
        self.process.wait(STOP_SECONDS_MAX)

    def close(self) -> None:
        """Send SIGTERM, and SIGKILL after a timeout."""
        self.process.terminate()
        try:
            self.process.wait(STOP_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            self.kill()

    def __enter__(self) -> KafkaBroker:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _die_with_parent() -> None:
    """Make the kernel kill the broker when the thread that started it ends."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def _free_ports(count: int) -> list[int]:
    """Return distinct free ports: all are bound at the same time."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for bound in sockets:
            bound.bind(("127.0.0.1", 0))
        return [int(bound.getsockname()[1]) for bound in sockets]
