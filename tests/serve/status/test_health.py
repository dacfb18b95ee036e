"""Each room says how it is; a failed one makes the node unready, a degraded one does not."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from frazil.errors import Fenced, Overloaded
from frazil.lake import Lake
from frazil.log import Record, append_of_records
from frazil.model import MiB
from frazil.serve import NodeContext, checks_of
from frazil.settings import LogConfig
from frazil.status import Check, State, is_ready, readiness_text
from tests.serve.open_rooms import open_rooms

SMALL = LogConfig(
    segment_bytes_max=MiB, disk_bytes_max=8 * MiB, batch_bytes_max=MiB, group_bytes_max=MiB
)


def check(rooms: NodeContext, room: str) -> Check:
    (found,) = (each for each in checks_of(rooms) if each.component == room)
    return found


def test_a_healthy_node_is_ready(tmp_path: Path) -> None:
    """What is off or not started yet is no fault."""
    with open_rooms(tmp_path, has_lake=True) as rooms:
        checks = checks_of(rooms)
        assert [each.state for each in checks] == ["ok"] * 8
        assert is_ready(checks)
        assert readiness_text(checks).splitlines() == [
            "[+]node ok",
            "[+]log ok",
            "[+]ingest ok",
            "[+]hot ok",
            "[+]tables ok: off (hot.enabled = false)",
            "[+]lake ok: Spark not started",
            "[+]query ok: off (hot.enabled = false)",
            "[+]connectors ok",
            "readyz check passed",
        ]
        off = replace(rooms, tier=None, lake=None)
        assert check(off, "hot").why == "off (hot.enabled = false)"
        assert check(off, "lake").why == "off, or not installed"


@pytest.mark.parametrize("state", ["starting", "stopping"])
def test_only_a_running_node_is_ready(state: State, tmp_path: Path) -> None:
    """Whoever sends requests is told to wait, or to go elsewhere."""
    with open_rooms(tmp_path) as rooms:
        rooms.uptime.state = state
        assert not is_ready(checks_of(rooms))


def test_a_short_disk_is_degraded_and_a_full_one_not_ready(tmp_path: Path) -> None:
    with open_rooms(tmp_path) as rooms:
        budget = rooms.own_log.budget
        budget.is_disk_short = True
        found = check(rooms, "log")
        assert (found.state, is_ready(checks_of(rooms))) == ("degraded", True)
        assert "the disk is short of space" in (found.why or "")
        budget.is_reserve_used = True
        found = check(rooms, "log")
        assert (found.state, is_ready(checks_of(rooms))) == ("failed", False)
        assert "the disk is full" in (found.why or "")


def test_a_full_log_is_not_ready(tmp_path: Path) -> None:
    """The check has the size and the slowest reader."""
    with open_rooms(tmp_path, log_config=SMALL) as rooms:
        body = append_of_records(
            [Record(offset=0, timestamp_ms=1, key=None, value=bytes(700 * 1024))]
        )
        with pytest.raises(Overloaded):
            for _ in range(20):
                rooms.own_log.append("otlp_logs", body).result()
        found = check(rooms, "log")
        assert found.state == "failed"
        assert "the log is full" in (found.why or "")
        assert "no lake has reported any yet" in (found.next_step or "")
        assert not is_ready(checks_of(rooms))


def test_a_dead_hot_worker_is_not_ready(tmp_path: Path) -> None:
    """What was acknowledged is safe; what is shown is old, so SQL goes elsewhere."""
    with open_rooms(tmp_path) as rooms:
        assert rooms.tier is not None
        rooms.tier.trouble = "the log cannot be read"
        assert check(rooms, "hot").state == "degraded"
        rooms.tier.died = MemoryError("no more")
        checks = checks_of(rooms)
        assert not is_ready(checks)
        text = readiness_text(checks)
        assert "[-]hot failed: new rows are not visible: MemoryError('no more'); " in text
        assert text.endswith("readyz check failed\n")


def test_a_failing_lake_is_degraded_but_ready(tmp_path: Path) -> None:
    """Spark or a catalog that is down takes no node out of service; a dead thread does."""
    with open_rooms(tmp_path, has_lake=True) as rooms:
        lake = rooms.lake
        assert lake is not None
        lake.trouble = "the catalog\ndoes not answer"
        assert check(rooms, "lake").state == "degraded"
        assert is_ready(checks_of(rooms))
        assert "the catalog does not answer" in readiness_text(checks_of(rooms))
        lake.given_up = Fenced("somebody else fills them")
        assert check(rooms, "lake").state == "degraded"
        lake.died = SystemError("gone")
        assert check(rooms, "lake").state == "failed"


def test_a_dead_lake_thread_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever asks it afterwards is refused, and does not wait for ever."""

    class Gone(BaseException):
        """What no loop is meant to catch."""

    def die(_: Lake) -> None:
        raise Gone("now")

    monkeypatch.setattr(Lake, "_refresh", die)
    with open_rooms(tmp_path, has_lake=True) as rooms:
        assert rooms.lake is not None
        rooms.lake._thread.join(20)
        assert isinstance(rooms.lake.died, Gone)
        assert check(rooms, "lake").state == "failed"
        with pytest.raises(Exception, match="its thread died: now"):
            rooms.lake.flush()


def test_a_gate_that_drains_is_not_ready(tmp_path: Path) -> None:
    with open_rooms(tmp_path) as rooms:
        rooms.ports._gate.drain()
        assert check(rooms, "ingest").state == "failed"
