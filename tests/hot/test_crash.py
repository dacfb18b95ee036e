"""After a power cut, a kill or a failed call at any moment, every row is there once."""

from __future__ import annotations

import errno

import pytest

from frazil.hot.segment import segments
from frazil.model import Rand
from tests.hot.build import (
    SMALL,
    TOPIC,
    Machine,
    check_pieces,
    expected_places,
    lines,
    places,
    start,
)
from tests.sim.disk import Faults, Model, PowerCut, SimDisk

REQUESTS = 24
EVICTED_BELOW = 8


@pytest.fixture(autouse=True)
def _merge_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Merge early, so that a short scenario has a merge."""
    monkeypatch.setattr(segments, "MERGE_COUNT", 3)


def live(disk: SimDisk, acknowledged: list[int]) -> Machine:
    """Seal, merge, evict, restart, seal again; records what was acknowledged."""
    machine = start(disk)
    for begin in range(0, REQUESTS, 4):
        machine.add(*lines(begin, begin + 4))
        acknowledged.append(begin + 4)
        machine.tier.step()
        machine.seal()
        if begin == 4:
            machine.tier.evict_below(TOPIC, EVICTED_BELOW)
        if begin == 12:
            machine.close()
            machine = start(disk)
            machine.catch_up()
    return machine


def assert_complete(machine: Machine, acknowledged: list[int]) -> None:
    """Every acknowledged row that was not evicted is there once; unacknowledged ones may be."""
    found = sorted(places(machine.tier.pieces("logs")))
    count = machine.log.partition(TOPIC, 0).durable_watermark
    assert count >= max(acknowledged, default=0)
    begins = {0, 4, EVICTED_BELOW}
    assert found in [expected_places(count)[2 * begin :] for begin in begins]
    if max(acknowledged, default=0) > EVICTED_BELOW:
        assert found[0][0] == EVICTED_BELOW, "what was evicted stays away"
    check_pieces(machine.tier)


def recover(disk: SimDisk) -> Machine:
    machine = start(disk)
    machine.catch_up()
    return machine


def count_calls() -> tuple[int, list[str]]:
    disk = SimDisk(trace=[])
    live(disk, [])
    assert disk.trace is not None
    return disk.calls, disk.trace


def test_the_scenario_covers_all_operations() -> None:
    """Segments are written, merged, evicted and opened again."""
    disk = SimDisk(trace=[])
    acknowledged: list[int] = []
    machine = live(disk, acknowledged)
    assert_complete(machine, acknowledged)
    trace = "\n".join(disk.trace or [])
    assert trace.count("rename hot/logs/0/") >= 8
    assert "unlink hot/logs/0/00000000000000000000.arrow" in trace
    assert "map hot/logs/0/" in trace


@pytest.mark.parametrize("model", ["ext4", "weak"])
def test_rows_are_complete_after_a_power_cut_at_any_storage_call(model: Model) -> None:
    """Also after sealing and another start."""
    calls, trace = count_calls()
    for crash_at in range(1, calls + 1):
        if "hot" not in trace[crash_at - 1]:
            continue  # the log has a sweep of its own
        disk = SimDisk(model=model, faults=Faults(crash_at=crash_at), rand=Rand(crash_at))
        acknowledged: list[int] = []
        with pytest.raises(PowerCut):
            live(disk, acknowledged)
        again = recover(disk.crash(Rand(crash_at)))
        assert_complete(again, acknowledged)
        again.seal()
        assert_complete(again, acknowledged)
        third = recover(again.disk.crash(Rand(crash_at + 1)))
        assert_complete(third, acknowledged)


def test_rows_are_complete_after_a_kill_at_any_storage_call() -> None:
    """The page cache survives a kill, so half-done work is met at the start."""
    calls, trace = count_calls()
    for crash_at in range(1, calls + 1):
        if "hot" not in trace[crash_at - 1]:
            continue
        disk = SimDisk(faults=Faults(crash_at=crash_at), rand=Rand(crash_at))
        acknowledged: list[int] = []
        with pytest.raises(PowerCut):
            live(disk, acknowledged)
        again = recover(disk.process_kill())
        assert_complete(again, acknowledged)


def test_recovery_survives_repeated_power_cuts() -> None:
    disk = SimDisk()
    acknowledged: list[int] = []
    machine = live(disk, acknowledged)
    names = [path for path in disk.files() if path.endswith(".arrow")]
    disk.rot(names[-1], Rand(1), "flip")
    disk.rot(names[0], Rand(2), "cut", size=100)
    machine.close()
    trial = disk.process_kill()
    recover(trial).seal()
    for crash_at in range(1, trial.calls + 1):
        cut = disk.process_kill(Faults(crash_at=crash_at))
        with pytest.raises(PowerCut):
            recover(cut).seal()
        assert_complete(recover(cut.crash(Rand(crash_at))), acknowledged)


@pytest.mark.parametrize("code", [errno.EIO, errno.ENOSPC])
def test_a_failed_storage_call_raises_at_start_and_is_retried_later(code: int) -> None:
    """One call of the hot tier fails once."""
    calls, trace = count_calls()
    for number in range(1, calls + 1):
        if not trace[number - 1].split()[1].startswith(("hot/", "log/subscribers/hot")):
            continue
        disk = SimDisk(faults=Faults(fail_at=(number, code)))
        acknowledged: list[int] = []
        try:
            machine = live(disk, acknowledged)
        except OSError as error:
            assert error.errno == code
            disk.faults = Faults()
            machine = recover(disk.process_kill())
        machine.clock.advance(SMALL.retry_ms)
        machine.catch_up()
        machine.seal()
        assert_complete_or_evicted(machine, acknowledged)
        assert_complete_or_evicted(recover(machine.disk.process_kill()), acknowledged)


def assert_complete_or_evicted(machine: Machine, acknowledged: list[int]) -> None:
    """As `assert_complete`, but a failed eviction may not have happened."""
    found = sorted(places(machine.tier.pieces("logs")))
    count = machine.log.partition(TOPIC, 0).durable_watermark
    assert count >= max(acknowledged, default=0)
    assert found in [expected_places(count)[2 * begin :] for begin in (0, 4, EVICTED_BELOW)]
    check_pieces(machine.tier)


@pytest.mark.parametrize("model", ["ext4", "weak"])
def test_bytes_of_a_failed_sync_are_never_used(model: Model) -> None:
    """Not even after a power cut."""
    _, trace = count_calls()
    synced = [call for call in trace if call.split()[0] in ("sync", "settle", "sync_directory")]
    for number, call in enumerate(synced, 1):
        if "hot" not in call:
            continue
        disk = SimDisk(model=model, faults=Faults(fail_sync_at=number))
        acknowledged: list[int] = []
        try:
            machine = live(disk, acknowledged)
        except OSError:  # at the start it is told
            machine = recover(disk.crash(Rand(number)))
        assert disk.fired["fail_sync"] == 1
        machine.clock.advance(SMALL.retry_ms)
        machine.catch_up()
        machine.seal()
        assert_complete_or_evicted(machine, acknowledged)
        after = recover(machine.disk.crash(Rand(number)))
        assert_complete_or_evicted(after, acknowledged)
