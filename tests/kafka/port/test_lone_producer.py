"""A producer that is alone: its batches are written by the event loop."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from frazil.kafka.context import ConnectionState, NetworkAddress, RequestContext
from frazil.kafka.produce import lone_producer
from frazil.kafka.produce.lone_producer import (
    BYTES_MAX,
    RECOVER_FACTOR,
    REQUESTS_MIN,
    SLOW_MS,
    LoneProducer,
)
from frazil.log import Append, Record
from frazil.log.append import append_of_records
from frazil.settings import TopicConfig
from tests.kafka.port.opened import opened
from tests.kafka.port.test_produce import of_producer, send, stored
from tests.sim.clock import SimClock

HERE = NetworkAddress("127.0.0.1", 1)


def append(size: int) -> Append:
    return append_of_records([Record(offset=0, timestamp_ms=1, key=None, value=bytes(size))])


def context(*, is_only: bool = True) -> RequestContext:
    state = ConnectionState(
        client=HERE, local=HERE, principal="User:x", is_authenticated=True, kept={}
    )
    return RequestContext(9, "", state, is_only)


def test_who_is_alone() -> None:
    """One connection, for some requests, that waits for each response; not with large batches, and
    not for a while after a write that took long."""
    clock = SimClock()
    lone = LoneProducer(clock)
    one, small = context(), append(10)
    alone = [lone.is_lone(one, small) for _ in range(REQUESTS_MIN + 2)]
    assert alone == [False] * REQUESTS_MIN + [True, True]
    assert not lone.is_lone(one, append(BYTES_MAX))
    pipelined = RequestContext(9, "", one.connection, is_only=False)
    assert not lone.is_lone(pipelined, small)
    alone = [lone.is_lone(one, small) for _ in range(REQUESTS_MIN)]
    assert alone == [False] * (REQUESTS_MIN - 1) + [True], "begins anew"
    clock.advance(SLOW_MS + 1)
    lone.written()
    clock.advance(RECOVER_FACTOR * (SLOW_MS + 1) - 1)
    assert not lone.is_lone(one, small)
    clock.advance(1)
    assert lone.is_lone(one, small)
    assert not lone.is_lone(context(), small)
    assert not lone.is_lone(one, small), "two of them take turns"


def test_its_batches_are_written_by_the_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Answered like all others, repeated and refused ones, too; a second producer ends it."""
    monkeypatch.setattr(lone_producer, "SLOW_MS", 60_000)  # however busy this machine is
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
