"""Appends of another process: many in flight, each answered once."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

import pytest

from frazil.disk import RealDisk
from frazil.errors import (
    Conflict,
    Overloaded,
    PositionMismatch,
    TooLarge,
    Unavailable,
    Unknown,
    Unresolved,
)
from frazil.log import (
    Append,
    AppendChannel,
    CommitSignal,
    CommitWaiter,
    Log,
    LogOwner,
    ObservedLog,
    Record,
    SourceStep,
    append_of_records,
    serve_appends,
    serve_observer,
)
from frazil.log.external import append_channel
from frazil.model import SystemClock, SystemRand
from frazil.processes import Channel
from frazil.settings import TopicConfig
from tests.log.build import batch, numbers

WAIT_S = 30.0


@contextmanager
def served(folder: Path) -> Iterator[tuple[Log, AppendChannel]]:
    """An owner and an observer's channel, over real files and sockets."""
    ours, theirs = socket.socketpair()
    with Log.open(RealDisk(folder), clock=SystemClock(), rand=SystemRand()) as log:
        log.create_topic("t", TopicConfig(partitions=2))
        serving = threading.Thread(target=serve_appends, args=(log, ours))
        serving.start()
        channel = AppendChannel(theirs)
        try:
            yield log, channel
        finally:
            channel.close()
            serving.join(WAIT_S)
            assert not serving.is_alive()


def test_many_appends_are_in_flight_at_once_and_share_commits(tmp_path: Path) -> None:
    with served(tmp_path) as (log, channel):
        group_count = 0

        def note() -> None:
            nonlocal group_count
            group_count += 1

        log.writer.listen(note)
        sent = [channel.append("t", batch(value)) for value in numbers(0, 500)]
        offsets = [future.result(WAIT_S).base_offset for future in sent]
        assert offsets == list(range(500))
        assert group_count < 250
        assert channel.in_flight == 0


def test_each_append_gets_its_own_error(tmp_path: Path) -> None:
    record = Record(offset=0, timestamp_ms=1, key=None, value=b"v")
    with served(tmp_path) as (log, channel):
        sent = {
            "stored": channel.append("t", batch(b"a"), partition=1),
            "missing": channel.append("x", batch(b"a")),
            "partition": channel.append("t", batch(b"a"), partition=7),
            "moved on": channel.append("t", append_of_records([record], expects_offset=5)),
            "another topic": channel.append("t", batch(b"a"), topic_id=uuid4()),
        }
        errors = {name: future.exception(WAIT_S) for name, future in sent.items()}
        assert errors["stored"] is None
        assert isinstance(errors["missing"], Unknown) and "no topic x" in str(errors["missing"])
        assert isinstance(errors["partition"], Unknown)
        assert isinstance(errors["moved on"], Conflict)
        assert isinstance(errors["another topic"], Unknown)
        assert log.partition("t", 0).durable_watermark == 0
        assert log.partition("t", 1).durable_watermark == 1


def test_a_repetition_is_a_duplicate(tmp_path: Path) -> None:
    with served(tmp_path) as (_, channel):
        append = batch(b"a", digest=bytes(16))
        first, second = (channel.append("t", append).result(WAIT_S) for _ in range(2))
        assert (first.is_duplicate, second.is_duplicate) == (False, True)
        assert second.base_offset == first.base_offset


def test_what_is_in_flight_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody serves the other end."""
    ours, theirs = socket.socketpair()
    monkeypatch.setattr(append_channel, "COUNT_MAX", 2)
    channel = AppendChannel(theirs)
    waiting = [channel.append("t", batch(b"a")) for _ in range(2)]
    with pytest.raises(Overloaded, match="2 writes of"):
        channel.append("t", batch(b"a"))
    monkeypatch.setattr(append_channel, "REQUEST_BYTES_MAX", 100)
    with pytest.raises(TooLarge, match="above 100"):
        channel.append("t", batch(bytes(200)))
    ours.close()
    for future in waiting:
        with pytest.raises(Unresolved, match="repeat the same write"):
            future.result(WAIT_S)
    with pytest.raises(Unavailable, match="has ended"):
        channel.append("t", batch(b"a"))
    channel.close()


def test_an_observer_that_stops_reading_does_not_stop_the_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Replies that nobody reads fill the socket; appends of others go on."""
    monkeypatch.setattr(append_channel, "REPLIES_MAX", 1)
    ours, theirs = socket.socketpair()
    with Log.open(RealDisk(tmp_path), clock=SystemClock(), rand=SystemRand()) as log:
        log.create_topic("t")
        serving = threading.Thread(target=serve_appends, args=(log, ours))
        serving.start()
        for side in (ours, theirs):
            side.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1)
        channel: Channel[object] = Channel(theirs, object)

        def flood() -> None:
            try:
                for number in range(3000):
                    payload = batch(b"a").payload
                    channel.send(
                        append_channel.AppendRequest(number, "t", None, 0, payload, None, None)
                    )
            except OSError:
                return  # closed below

        flooding = threading.Thread(target=flood)
        flooding.start()
        try:
            for _ in range(20):
                log.append("t", batch(b"mine")).result(WAIT_S)
        finally:
            channel.close()
            flooding.join(WAIT_S)
            serving.join(WAIT_S)
        assert not serving.is_alive()


def test_an_observed_log_appends_and_creates_topics(tmp_path: Path) -> None:
    with served(tmp_path) as (log, channel):
        ours, theirs = socket.socketpair()
        serving = threading.Thread(target=serve_observer, args=(log, ours))
        serving.start()
        signal = CommitSignal()
        log.writer.listen(signal.notify)
        waiter = CommitWaiter(os.dup(signal.descriptor), SystemClock())
        observed = ObservedLog(RealDisk(tmp_path), LogOwner(theirs), waiter, channel)
        topic = observed.create_topic("made", TopicConfig(partitions=3))
        assert len(topic.partitions) == 3
        result = observed.append_durably("made", batch(b"a"), partition=2, topic_id=topic.topic_id)
        assert result.end_offset == observed.partition("made", 2).view.durable_watermark == 1
        with pytest.raises(Conflict, match="other settings"):
            observed.create_topic("made", TopicConfig(partitions=1))
        observed.delete_topic("made")
        assert not log.has_topic("made")
        with pytest.raises(Unknown):
            observed.append_durably("made", batch(b"a"), topic_id=topic.topic_id)
        observed.close()
        serving.join(WAIT_S)
        log.writer.unlisten(signal.notify)
        os.close(signal.descriptor)


def test_a_step_of_a_copy_is_compared_by_the_owner(tmp_path: Path) -> None:
    """As with an append of the owner's process, errors included."""

    def step(expected: bytes | None, position: bytes) -> Append:
        record = Record(offset=0, timestamp_ms=1, key=None, value=position)
        return append_of_records([record], step=SourceStep("s", 1, expected, position))

    ours, theirs = socket.socketpair()
    with served(tmp_path) as (log, channel):
        calls = threading.Thread(target=serve_observer, args=(log, ours))
        calls.start()
        owner = LogOwner(theirs)
        assert owner.source_position("t", "s", 0) is None
        first = channel.append("t", step(None, b"1"))
        again = channel.append("t", step(None, b"1"))
        assert not first.result(WAIT_S).is_duplicate and again.result(WAIT_S).is_duplicate
        with pytest.raises(PositionMismatch) as mismatch:
            channel.append("t", step(b"7", b"8")).result(WAIT_S)
        assert mismatch.value.current == b"1"
        channel.append("t", step(b"1", b"2")).result(WAIT_S)
        found = log.source_position("t", "s")
        assert found is not None and found.position == b"2"
        assert owner.source_position("t", "s", 0) == found
        with pytest.raises(Unknown):
            owner.source_position("x", "s", 0)
        owner.close()
        calls.join(WAIT_S)
