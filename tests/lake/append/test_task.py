"""A task writes files with all rows of its slice, or leaves no files."""

from __future__ import annotations

import errno
import pickle
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from frazil.disk import Disk, RealDisk
from frazil.errors import Conflict, Corrupt, Overloaded
from frazil.lake.append.log_source import LogFiles, LogSource, read_files
from frazil.lake.append.slice import Slice, SourcePartition
from frazil.lake.append.task import TaskTarget, WrittenSlice, run_slice, write_slice
from frazil.log import Log, Record, append_of_records
from frazil.model import MiB, Signal
from frazil.model.arrow import Decode, Decoded, ExportRequest, decode
from frazil.settings import LogConfig, TopicConfig
from tests.lake.rows import SIGNALS, bodies, decoded, multiset, opened
from tests.log.build import TOPIC, flipped, open_log, put
from tests.sim.disk import Faults, SimDisk

DAY_MS = 86_400_000
LOG = LogConfig(
    segment_bytes_max=64 * 1024,
    batch_bytes_max=8 * MiB,
    queue_bytes_max=32 * MiB,
    disk_bytes_max=64 * MiB,
    index_interval_bytes=256,
)
FAULTS_MAX = 400
"""More storage calls than the small task of the fault tests makes."""


def store(log: Log, values: Sequence[bytes]) -> list[ExportRequest]:
    """Append requests, a day apart. Returns them as the decoder gets them."""
    for number, value in enumerate(values):
        record = Record(offset=0, timestamp_ms=number * DAY_MS, key=None, value=value)
        log.append(TOPIC, append_of_records([record]))
        log.writer.step()
    return [
        ExportRequest(partition=0, offset=number, ingest_time_ms=number * DAY_MS, body=value)
        for number, value in enumerate(values)
    ]


def planned(log: Log, signal: str, folder: str = "", bytes_max: int = 1 << 30) -> list[Slice]:
    source = SourcePartition(table=Signal(signal).table, signal=signal, topic=TOPIC, partition=0)
    return LogSource(log, Path(folder)).plan(source, 0, None, bytes_max)


def ran(
    each: Slice,
    log_disk: Disk,
    rows_disk: Disk,
    dead_disk: Disk,
    name: str = "name",
    *,
    decode: Decode = decode,
    rows_bytes_max: int = 8 * MiB,
) -> WrittenSlice:
    assert isinstance(each.origin, LogFiles)
    batches = read_files(log_disk, each.origin.segment_range)
    return write_slice(
        each, batches, rows_disk, dead_disk, name, decode=decode, rows_bytes_max=rows_bytes_max
    )


def broken(values: list[bytes]) -> list[bytes]:
    """Make every third request invalid."""
    return [b"\xff" + value if number % 3 == 2 else value for number, value in enumerate(values)]


def dead_of(tables: Sequence[pa.Table]) -> Counter[tuple[int, int | None, bytes]]:
    return Counter(
        (row["_offset"], row["_row"], row["payload"]) for t in tables for row in t.to_pylist()
    )


@pytest.mark.parametrize("signal", SIGNALS)
@given(
    seed=st.integers(0, 1000),
    slice_bytes=st.sampled_from([1, 3000, 1 << 30]),
    rows_bytes=st.sampled_from([1, 20_000, 8 * MiB]),
)
@settings(max_examples=8, deadline=None)
def test_every_row_and_dead_letter_is_written_once(
    signal: str, seed: int, slice_bytes: int, rows_bytes: int
) -> None:
    """However the work is cut and memory is bounded."""
    disk = SimDisk()
    log = open_log(disk, LOG)
    requests = store(log, broken(bodies(signal, seed, 9)))
    slices = planned(log, signal, bytes_max=slice_bytes)
    out, letters_out = SimDisk(), SimDisk()
    done = [
        ran(each, disk, out, letters_out, f"t{n}", rows_bytes_max=rows_bytes)
        for n, each in enumerate(slices)
    ]
    rows, dead = decoded(signal, requests)
    files = [file for task in done for file in task.files]
    assert multiset(opened(out, file).read() for file in files) == multiset([rows])
    assert sum(task.row_count for task in done) == rows.num_rows
    letters = [opened(letters_out, file).read() for task in done for file in task.dead_files]
    assert dead_of(letters) == Counter((d.offset, d.row, d.payload) for d in dead)
    assert [(task.begin, task.end) for task in done] == [(s.begin, s.end) for s in slices]
    assert sorted(out.files()) == sorted(file.path for file in files)


def test_a_task_runs_on_local_folders(tmp_path: Path) -> None:
    """Its result can be pickled."""
    with open_log(RealDisk(tmp_path / "log"), LOG) as log:
        requests = store(log, broken(bodies("logs", 1, 12)))
        (whole,) = planned(log, "logs", str(tmp_path / "log"))
        rows_folder, dead_folder = tmp_path / "lake" / "logs", tmp_path / "lake" / "dead_letters"
        target = TaskTarget(
            rows_location=str(rows_folder), dead_location=str(dead_folder), name="7-0"
        )
        done = run_slice(pickle.loads(pickle.dumps(whole)), target)
    assert pickle.loads(pickle.dumps(done)) == done
    disk = RealDisk(rows_folder)
    rows, dead = decoded("logs", requests)
    assert multiset(opened(disk, file).read() for file in done.files) == multiset([rows])
    assert sum(file.row_count for file in done.dead_files) == len(dead) > 0
    assert all(
        (dead_folder / file.path).stat().st_size == file.size_bytes for file in done.dead_files
    )


def test_a_slice_without_rows_has_no_files() -> None:
    """Its offsets are covered."""
    disk, out = SimDisk(), SimDisk()
    log = open_log(disk, LOG)
    store(log, [b"", b""])
    (whole,) = planned(log, "logs")
    done = ran(whole, disk, out, out)
    assert (done.begin, done.end, done.files, done.dead_files) == (0, 2, (), ())
    assert out.files() == []


def test_a_request_that_breaks_the_decoder_is_a_dead_letter() -> None:
    """Other requests become rows. The dead letter has the error and the request's time."""

    def fragile(signal: str, requests: Sequence[ExportRequest]) -> Decoded:
        if any(request.body == b"crash" for request in requests):
            raise RuntimeError("the decoder has a fault")
        return decode(signal, requests)

    disk, out, dead_out = SimDisk(), SimDisk(), SimDisk()
    log = open_log(disk, LOG)
    good = bodies("logs", 2, 6)
    requests = store(log, [*good[:4], b"crash", *good[4:]])
    (whole,) = planned(log, "logs")
    done = ran(whole, disk, out, dead_out, decode=fragile)
    rows, _ = decoded("logs", [r for r in requests if r.body != b"crash"])
    assert multiset(opened(out, file).read() for file in done.files) == multiset([rows])
    letters = [row for f in done.dead_files for row in opened(dead_out, f).read().to_pylist()]
    (crashed,) = [row for row in letters if row["payload"] == b"crash"]
    assert crashed["_offset"] == 4 and "the decoder has a fault" in crashed["reason"]
    assert crashed["time"].timestamp() * 1000 == 4 * DAY_MS


def test_out_of_memory_fails_the_task() -> None:
    """The request does not become a dead letter."""

    def exhausted(signal: str, requests: Sequence[ExportRequest]) -> Decoded:
        raise MemoryError

    disk, out = SimDisk(), SimDisk()
    log = open_log(disk, LOG)
    store(log, bodies("logs", 2, 3))
    (whole,) = planned(log, "logs")
    with pytest.raises(MemoryError):
        ran(whole, disk, out, out, decode=exhausted)
    assert out.files() == []


@pytest.mark.parametrize("full", [0, 1])
def test_a_full_disk_is_overloaded_and_leaves_no_files(full: int) -> None:
    """On either disk."""
    disk = SimDisk()
    log = open_log(disk, LOG)
    store(log, broken(bodies("logs", 3, 9)))
    (whole,) = planned(log, "logs")
    roomy = (SimDisk(), SimDisk())
    ran(whole, disk, *roomy)
    needed = sum(len(roomy[full].data(path)) for path in roomy[full].files())
    for capacity in range(0, needed, needed // 12):
        out = (SimDisk(), SimDisk())
        out[full].faults = Faults(capacity_bytes=capacity)
        with pytest.raises(Overloaded, match="offsets 0 up to 9"):
            ran(whole, disk, *out)
        assert [each.files() for each in out] == [[], []]
    out[full].faults = Faults(capacity_bytes=needed)
    assert ran(whole, disk, *out).row_count > 0


@pytest.mark.parametrize("failing", [0, 1])
def test_a_failed_storage_call_leaves_no_files(failing: int) -> None:
    """At any call, on either disk; the error is raised."""
    disk = SimDisk()
    log = open_log(disk, LOG)
    store(log, broken(bodies("logs", 3, 4)))
    (whole,) = planned(log, "logs")
    for call in range(1, FAULTS_MAX):
        out = (SimDisk(), SimDisk())
        out[failing].faults = Faults(fail_at=(call, errno.EIO))
        try:
            ran(whole, disk, *out)
        except OSError as error:
            assert error.errno == errno.EIO
            assert [each.files() for each in out] == [[], []]
            continue
        assert call > 1 and not out[failing].fired
        return
    raise AssertionError("the task makes more storage calls than were tried")


def test_a_damaged_or_trimmed_log_fails_the_task() -> None:
    """Files written before are deleted."""
    disk, out = SimDisk(), SimDisk()
    log = open_log(disk, LOG, topic=TopicConfig(retention_ms=0))
    store(log, bodies("logs", 4, 200))
    (whole,) = planned(log, "logs")
    assert isinstance(whole.origin, LogFiles)
    path = whole.origin.segment_range.extents[-1].path
    data = disk.data(path)
    assert len(whole.origin.segment_range.extents) > 1
    put(disk, path, flipped(data, len(data) * 8 - 50))
    with pytest.raises(Corrupt):
        ran(whole, disk, out, out, rows_bytes_max=1000)
    assert out.files() == []
    put(disk, path, data)
    log.maintain()
    with pytest.raises(Conflict, match="trimmed or rewritten"):
        ran(whole, disk, out, out, rows_bytes_max=1000)
    assert out.files() == []


def test_two_attempts_write_different_files() -> None:
    """The first may still be running."""
    disk, out = SimDisk(), SimDisk()
    log = open_log(disk, LOG)
    store(log, bodies("logs", 5, 6))
    (whole,) = planned(log, "logs")
    one, other = (ran(whole, disk, out, SimDisk(), name) for name in ("0", "1"))
    paths = {*(file.path for file in one.files), *(file.path for file in other.files)}
    assert len(paths) == 2 * len(one.files)
    assert [file.metrics for file in one.files] == [file.metrics for file in other.files]
    with pytest.raises(FileExistsError):
        ran(whole, disk, out, SimDisk(), "0")
    assert set(out.files()) == paths
