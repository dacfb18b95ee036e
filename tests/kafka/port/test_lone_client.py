"""A client that is alone: its batches are written by the event loop."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from frazil.kafka import lone_client
from frazil.kafka.lone_client import (
    BYTES_MAX,
    RECOVER_FACTOR,
    REQUESTS_MIN,
    SLOW_MS,
    LoneClient,
)
from frazil.settings import TopicConfig
from tests.kafka.port.opened import opened
from tests.kafka.port.test_produce import of_producer, send, stored
from tests.sim.clock import SimClock


def test_who_is_alone() -> None:
    """One client, for some requests, that waits for each response; not with large batches, and not
    for a while after a write that took long."""
    clock = SimClock()
    lone = LoneClient(clock)
    one, other = object(), object()
    alone = [lone.is_lone(one) for _ in range(REQUESTS_MIN + 2)]
    assert alone == [False] * REQUESTS_MIN + [True, True]
    assert not lone.is_lone(one, size_bytes=BYTES_MAX + 1)
    assert not lone.is_lone(one, waits=False)
    alone = [lone.is_lone(one) for _ in range(REQUESTS_MIN)]
    assert alone == [False] * (REQUESTS_MIN - 1) + [True], "begins anew"
    clock.advance(SLOW_MS + 1)
    lone.written()
    clock.advance(RECOVER_FACTOR * (SLOW_MS + 1) - 1)
    assert not lone.is_lone(one)
    clock.advance(1)
    assert lone.is_lone(one)
    assert not lone.is_lone(other)
    assert not lone.is_lone(one), "two of them take turns"


def test_its_batches_are_written_by_the_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Answered like all others, repeated and refused ones, too; a second producer ends it."""
    monkeypatch.setattr(lone_client, "SLOW_MS", 60_000)  # however busy this machine is
    with opened(tmp_path) as port, port.client() as client, port.client() as other:
        port.log.create_topic("t", TopicConfig())
        threads: list[str] = []
        step = port.log.writer.step

        def noted() -> int:
            threads.append(threading.current_thread().name)
            return step()

        monkeypatch.setattr(port.log.writer, "step", noted)
        count = REQUESTS_MIN + 4
        assert [send(client, of_producer(n)) for n in range(count)] == [
            [(0, n)] for n in range(count)
        ]
        assert len(set(threads)) == 2 and len(set(threads[-4:])) == 1
        assert send(client, of_producer(count - 1)) == [(0, count - 1)], "repeated"
        assert send(client, of_producer(count + 1)) == [(45, -1)], "a gap"
        assert send(other, of_producer(0, producer_id=8)) == [(0, count)]
        assert send(client, of_producer(count)) == [(0, count + 1)]
        assert threads[-1] == threads[-2] == threads[0]
        assert len(stored(port)) == count + 2
