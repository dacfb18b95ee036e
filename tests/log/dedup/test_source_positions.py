"""Positions of sources: what a step is compared with, and what remains after damage."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frazil.errors import Corrupt, Fenced, Malformed, PositionMismatch, TooLarge
from frazil.log import Append, Log, Record, SourceStep, append_of_records, repair_partition
from frazil.log.dedup.source_positions import (
    POSITION_BYTES_MAX,
    SourcePositions,
    header_of_step,
    step_in,
)
from frazil.log.segment import HEADER_BYTES
from frazil.model import Rand
from frazil.settings import TopicConfig
from tests.log.build import FOLDER, SMALL, TOPIC, add, flipped, open_log, put, segments, values
from tests.sim.disk import SimDisk

SOURCES = f"{FOLDER}/sources.ckpt"
NAMES = st.text(min_size=1, max_size=60)
POSITIONS = st.binary(max_size=POSITION_BYTES_MAX)
EPOCHS = st.integers(0, 2**63 - 1)


def step(expected: bytes | None, position: bytes, epoch: int = 1) -> Append:
    record = Record(offset=0, timestamp_ms=1, key=b"k", value=position)
    return append_of_records([record], step=SourceStep("pg", epoch, expected, position))


def append(log: Log, each: Append) -> bool:
    """Append a step. Returns whether it was a duplicate."""
    answer = log.append(TOPIC, each)
    log.writer.step()
    return answer.result(0).is_duplicate


@given(name=NAMES, epoch=EPOCHS, position=POSITIONS)
def test_a_step_is_read_from_its_header(name: str, epoch: int, position: bytes) -> None:
    written = SourceStep(name, epoch, None, position)
    record = Record(
        offset=0, timestamp_ms=0, key=None, value=None, headers=(header_of_step(written),)
    )
    assert step_in([record]) == written


@given(known=st.dictionaries(NAMES, st.tuples(EPOCHS, POSITIONS, st.booleans())))
def test_positions_are_read_as_written(known: dict[str, tuple[int, bytes, bool]]) -> None:
    positions = SourcePositions()
    for at, (name, (epoch, position, is_lost)) in enumerate(known.items()):
        positions.remember(SourceStep(name, epoch, None, position), 10 * at, 10 * at + 5)
        if is_lost:
            assert positions.lose([(10 * at + 4, 10 * at + 6)]) == 1  # type: ignore[list-item]
    again = SourcePositions.decode(positions.encode())
    assert list(again.items()) == list(positions.items())


def test_a_step_continues_the_position_it_expects() -> None:
    log = open_log(SimDisk())
    assert log.source_position(TOPIC, "pg") is None
    assert not append(log, step(None, b"a"))
    assert not append(log, step(b"a", b"b"))
    assert append(log, step(b"a", b"b"))
    with pytest.raises(PositionMismatch) as mismatch:
        append(log, step(b"a", b"c"))
    assert mismatch.value.current == b"b"
    with pytest.raises(PositionMismatch):
        append(log, step(None, b"0"))
    assert not append(log, step(b"b", b"c", epoch=2))
    with pytest.raises(Fenced):
        append(log, step(b"c", b"d"))
    found = log.source_position(TOPIC, "pg")
    assert found is not None
    assert (found.epoch, found.position, found.base_offset) == (2, b"c", 2)
    assert values(log) == [b"a", b"b", b"c"]


def test_what_cannot_be_stored_is_refused() -> None:
    record = Record(offset=0, timestamp_ms=1, key=None, value=b"x")
    for source, epoch, position in (("", 0, b""), ("n" * 250, 0, b""), ("n", -1, b"")):
        with pytest.raises(Malformed):
            append_of_records([record], step=SourceStep(source, epoch, None, position))
    with pytest.raises(Malformed):
        append_of_records([record], step=SourceStep("n", 0, b"a", b"a"))
    with pytest.raises(Malformed):
        append_of_records([], step=SourceStep("n", 0, b"a", b"b"))
    with pytest.raises(TooLarge):
        append_of_records([record], step=SourceStep("n", 0, None, bytes(POSITION_BYTES_MAX + 1)))


def test_a_forgotten_source_stays_forgotten() -> None:
    disk = SimDisk()
    log = open_log(disk)
    append(log, step(None, b"a"))
    assert log.sources.forget_one(TOPIC, "pg")
    assert not log.sources.forget_one(TOPIC, "pg")
    again = open_log(disk.process_kill())
    assert again.source_position(TOPIC, "pg") is None
    assert not append(again, step(None, b"b"))


def test_a_damaged_checkpoint_is_rebuilt_while_the_log_is_whole() -> None:
    disk = SimDisk()
    log = open_log(disk)
    append(log, step(None, b"a"))
    log.close()
    put(disk := disk.process_kill(), SOURCES, b"damaged")
    found = open_log(disk).source_position(TOPIC, "pg")
    assert found is not None and found.position == b"a"


def test_a_damaged_checkpoint_of_a_trimmed_log_is_refused_until_it_is_repaired() -> None:
    """The log could hold an older step of the source, but not its last."""
    disk = SimDisk()
    log = open_log(disk, SMALL, topic=TopicConfig(retention_ms=0))
    append(log, step(None, b"a"))
    for number in range(30):
        add(log, b"%0100d" % number)
    log.maintain()
    assert log.partition(TOPIC, 0).view.start_offset > 0
    found = log.source_position(TOPIC, "pg")
    assert found is not None and found.position == b"a"
    log.close()
    put(disk := disk.process_kill(), SOURCES, b"damaged")
    with pytest.raises(Corrupt, match=r"frazil repair"):
        open_log(disk, SMALL)
    disk = disk.process_kill()
    report = repair_partition(disk, TOPIC, 0, SMALL, rand=Rand(1), now_ms=1)
    assert f"{SOURCES}.damaged" in report.files
    assert open_log(disk.process_kill(), SMALL).source_position(TOPIC, "pg") is None


def test_a_source_whose_last_records_are_lost_stops() -> None:
    disk = SimDisk()
    log = open_log(disk, SMALL)
    append(log, step(None, b"a"))
    append(log, step(b"a", b"b"))
    for number in range(30):
        add(log, b"%0100d" % number)
    log.close()
    disk = disk.process_kill()
    first = segments(disk)[0]
    put(disk, first, flipped(disk.data(first), 8 * (HEADER_BYTES + 200)))
    report = repair_partition(disk, TOPIC, 0, SMALL, rand=Rand(1), now_ms=1)
    assert report.lost
    again = open_log(disk.process_kill(), SMALL)
    with pytest.raises(PositionMismatch, match="lost"):
        again.source_position(TOPIC, "pg")
    with pytest.raises(PositionMismatch, match="lost"):
        append(again, step(b"b", b"c"))
    assert again.sources.forget_one(TOPIC, "pg")
    assert not append(again, step(None, b"b"))
