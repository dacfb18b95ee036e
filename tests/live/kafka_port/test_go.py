"""franz-go and sarama with a node: every codec, a group, transactions with offsets, topics."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.clients.node import Node
from tests.live.kafka_port.go_programs import PROGRAMS, run_checks


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    folder = tmp_path_factory.mktemp("node") / "data"
    settings = ("lake.enabled=false", "kafka.groups.initial_rebalance_delay_ms=0")
    with Node(folder, *(word for each in settings for word in ("--set", each))) as running:
        yield running


@pytest.mark.parametrize("name", PROGRAMS)
def test_everything_that_the_client_does(node: Node, name: str) -> None:
    run_checks(name, f"127.0.0.1:{node.kafka_port}", *PROGRAMS[name])
