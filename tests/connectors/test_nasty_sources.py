"""A source that misbehaves loses nothing, doubles nothing, and does not hurt the node."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

import pytest

from frazil.connectors.runtime.connector_state import ConnectorStates
from frazil.connectors.runtime.supervisor import ConnectorSupervisor
from frazil.disk import RealDisk
from frazil.log import Log
from frazil.settings import ConnectorsConfig
from tests.connectors.installing import install
from tests.connectors.supervised import opened_log, records_of, supervised, until

NASTY = Path(__file__).with_name("nasty.py")

RETRIED = {
    "segv": "signal 11",
    "kill": "signal 9",
    "exit": "exit code 0",
    "hang": "did not respond",
    "prints": "did not respond",
    "memory": "MemoryError",
    "oops": "RuntimeError",
    "eof": "the server has closed",
}
"""What ends a life, and why; the next one goes on."""
FATAL = {
    "fatal": "give it one",
    "garbage": "no message of ours",
    "no_batch": "must return SourceBatch",
    "no_sequence": "must return a sequence",
    "no_record": "is not a Record",
    "no_bytes": "are bytes",
    "no_position": "position that it continues",
    "long_position": "1025 bytes",
    "large": "the limit is",
    "other_topic": "which is not other_topic",
    "other_partition": "partition 5",
}
"""What a retry cannot help."""


@pytest.fixture(autouse=True)
def nasty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    types = {"nasty": "NASTY", "writer": "WRITER"}
    monkeypatch.setenv("PYTHONPATH", install(tmp_path / "site", NASTY, types))


@contextmanager
def all_at_once(log: Log, folder: Path, hows: Iterable[str]) -> Iterator[list[ConnectorSupervisor]]:
    states = ConnectorStates(RealDisk(str(folder)))
    with ExitStack() as stack:
        yield [
            stack.enter_context(
                supervised(log, folder, "nasty", {"how": how}, name=how, topic=how, states=states)
            )
            for how in hows
        ]


def has_started(connector: ConnectorSupervisor, times: int) -> bool:
    return connector.status().starts >= times


def has_failed(connector: ConnectorSupervisor) -> bool:
    return connector.status().word == "failed"


def test_a_life_that_ends_is_followed_by_another(tmp_path: Path) -> None:
    """It goes on where the log is, and says why the last one ended."""
    folder = tmp_path / "data"
    with opened_log(folder) as log, all_at_once(log, folder, RETRIED) as connectors:
        for connector, (how, reason) in zip(connectors, RETRIED.items(), strict=True):
            until(partial(has_started, connector, 2), connector.status)
            assert reason in connector.status().last_error
            assert "hunter2" not in connector.status().last_error
            assert [record.timestamp_ms for record in records_of(log, how)] == [1, 2, 3], how


def test_what_a_retry_cannot_help_ends_it_until_resume(tmp_path: Path) -> None:
    """Nothing of the wrong batch is stored; the failure outlives a restart of the node."""
    folder = tmp_path / "data"
    with opened_log(folder) as log:
        with all_at_once(log, folder, FATAL) as connectors:
            for connector, reason in zip(connectors, FATAL.values(), strict=True):
                until(partial(has_failed, connector), connector.status)
                assert reason in connector.status().why
        with all_at_once(log, folder, FATAL) as connectors:
            for connector in connectors:
                until(partial(has_failed, connector), connector.status)
                assert connector.status().starts == 0
            connectors[0].resume()
            until(lambda: connectors[0].status().starts == 1, connectors[0].status)
        for how in FATAL:
            times = [record.timestamp_ms for record in records_of(log, how)]
            assert times == [1, 2, 3][: len(times)], how
            assert len(times) == 3 or how == "garbage"  # what came before it may be unread


def test_a_flood_is_held_back(tmp_path: Path) -> None:
    """A source that never ends is slowed down by the log; the records stay in order."""
    config = ConnectorsConfig(in_flight_bytes_max=2_000_000)
    with (
        opened_log(tmp_path / "data") as log,
        supervised(log, tmp_path / "data", "nasty", {"how": "flood"}, config=config) as connector,
    ):
        until(lambda: connector.status().records >= 20_000, connector.status)
        connector.pause()
        until(lambda: connector.status().word == "paused", connector.status)
        times = [record.timestamp_ms for record in records_of(log)]
        assert times == sorted(times)
        assert all(times.count(number) == 1000 for number in (1, times[-1]))


def test_one_that_ignores_a_stop_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Closing the node does not wait for it."""
    monkeypatch.setattr("frazil.connectors.runtime.supervisor.STOP_NS", 200_000_000)
    with opened_log(tmp_path / "data") as log:
        with supervised(log, tmp_path / "data", "nasty", {"how": "deaf"}) as connector:
            until(lambda: connector.status().records == 3, connector.status)
            pid = connector.status().pid
        assert not Path(f"/proc/{pid}").exists()
        assert connector.status().pid is None
