"""A task reads exactly the requests of its slice."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

from frazil.disk import RealDisk
from frazil.errors import OutOfRange
from frazil.lake.append.log_source import LogFiles, LogSource, read_files
from frazil.lake.append.slice import Slice, SourcePartition, requests_of
from frazil.log import Append, Log, Record, append_of_records, encode_batch, parse_header
from frazil.model.arrow import ExportRequest
from tests.log.build import SMALL, TOPIC, add, batch, numbers, open_log, submit
from tests.sim.disk import SimDisk

SOURCE = SourcePartition(table="logs", signal="logs", topic=TOPIC, partition=0)
COUNT = 50


def filled(disk: SimDisk | RealDisk) -> Log:
    log = open_log(disk, SMALL)
    for value in numbers(0, COUNT):
        add(log, value)
    return log


def planned(log: Log, begin: int, end: int, *, bytes_max: int = 1 << 20) -> list[Slice]:
    return LogSource(log, Path("data")).plan(SOURCE, begin, end, bytes_max)


def read(each: Slice, disk: SimDisk, *, bytes_max: int = 1 << 20) -> list[list[ExportRequest]]:
    assert isinstance(each.origin, LogFiles)
    return list(requests_of(each, read_files(disk, each.origin.segment_range), bytes_max=bytes_max))


@pytest.mark.parametrize("bytes_max", [1, 500, 1 << 20])
@pytest.mark.parametrize(("begin", "end"), [(0, COUNT), (7, 8), (13, 41), (5, 5)])
def test_slices_have_each_request_once(begin: int, end: int, bytes_max: int) -> None:
    """With its offset and time, however the log is cut."""
    disk = SimDisk()
    slices = planned(filled(disk), begin, end, bytes_max=bytes_max)
    requests = [
        request
        for each in slices
        for some in read(each, disk, bytes_max=bytes_max)
        for request in some
    ]
    assert [(r.partition, r.offset, r.ingest_time_ms, r.body) for r in requests] == [
        (0, offset, 1, value) for offset, value in enumerate(numbers(begin, end), begin)
    ]
    with pytest.raises(OutOfRange):
        planned(open_log(SimDisk()), begin, COUNT + 1)


def test_requests_are_read_in_bounded_lists() -> None:
    """At most the limit in bytes, or one batch."""
    disk = SimDisk()
    (whole,) = planned(filled(disk), 0, COUNT)
    parts = read(whole, disk, bytes_max=40)
    assert len(parts) > COUNT // 6
    assert all(some and sum(len(r.body) for r in some) <= 40 for some in parts)


def test_a_slice_may_begin_and_end_inside_a_batch() -> None:
    disk = SimDisk()
    log = open_log(disk)
    submit(log, batch(*numbers(0, 10)))
    log.writer.step()
    (middle,) = planned(log, 3, 7)
    (some,) = read(middle, disk)
    assert [request.offset for request in some] == [3, 4, 5, 6]


def test_control_batches_are_skipped() -> None:
    disk = SimDisk()
    log = open_log(disk)
    add(log, b"one")
    marker = encode_batch(
        [Record(offset=0, timestamp_ms=1, key=b"\0\0\0\1", value=b"\0" * 6)],
        transactional=True,
        control=True,
        producer_id=5,
        producer_epoch=0,
        base_sequence=0,
    )
    submit(log, Append(parts=(marker,), header=parse_header(marker)))
    submit(log, append_of_records([Record(offset=0, timestamp_ms=2, key=None, value=None)]))
    log.writer.step()
    (whole,) = planned(log, 0, 3)
    (some,) = read(whole, disk)
    assert [(request.offset, request.body) for request in some] == [(0, b"one"), (2, b"")]


READ = """
import pickle, sys
from frazil.lake.append.slice import requests_of
planned = pickle.load(sys.stdin.buffer)
for some in requests_of(planned, planned.origin.read()):
    for request in some:
        print(request.body.decode())
assert not {"pyspark", "pyiceberg"} & sys.modules.keys()
"""


def test_another_process_reads_while_the_log_is_open(tmp_path: Path) -> None:
    """It needs no lock, no Spark and no catalog."""
    with filled(RealDisk(tmp_path)) as log:
        (whole,) = LogSource(log, tmp_path).plan(SOURCE, 0, None, 1 << 20)
        done = subprocess.run(
            [sys.executable, "-c", READ],
            input=pickle.dumps(whole),
            capture_output=True,
            check=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
            timeout=120,
        )
    assert done.stdout.split() == numbers(0, COUNT)
