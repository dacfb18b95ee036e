"""Two threads keep the tier going on a real disk: what is acknowledged becomes visible."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from frazil.disk import RealDisk
from frazil.hot import HotTier, HotWorker
from frazil.log import Log, Record, append_of_records
from frazil.model import KiB, Rand, SystemClock
from frazil.model.arrow.types import Decoded, ExportRequest
from frazil.settings import HotConfig
from tests.hot.build import (
    FOLDER,
    SCHEMAS,
    TOPIC,
    check_pieces,
    decode,
    expected_places,
    lines,
    places,
)

QUICK = HotConfig(
    seal_bytes=16 * KiB,
    seal_age_ms=50,
    memory_bytes_max=128 * KiB,
    disk_bytes_max=64 * 1024 * KiB,
    read_bytes=4 * KiB,
    refresh_ms=1,
)


class Running:
    """A log and a tier with all their threads."""

    def __init__(self, folder: Path, decode: Callable[..., Decoded] = decode) -> None:
        disk, clock = RealDisk(folder), SystemClock()
        self.fatal: list[BaseException] = []
        self.log = Log.open(disk, clock=clock, rand=Rand(1))
        self.log.create_topic(TOPIC)
        self.tier = HotTier(disk, self.log, QUICK, decode=decode, schemas=SCHEMAS, clock=clock)
        self.worker = HotWorker(self.tier, clock=clock, fatal=self.fatal.append)
        self.worker.start()

    def add(self, *bodies: bytes) -> None:
        for body in bodies:
            record = Record(offset=0, timestamp_ms=1, key=None, value=body)
            self.log.append(TOPIC, append_of_records([record]))

    def close(self) -> None:
        self.worker.close()
        self.tier.close()
        self.log.close()


@contextmanager
def running(folder: Path, decode: Callable[..., Decoded] = decode) -> Iterator[Running]:
    node = Running(folder, decode)
    try:
        yield node
    finally:
        node.close()


def wait_until(is_so: Callable[[], bool], what: str) -> None:
    for _ in range(30_000):
        if is_so():
            return
        time.sleep(0.001)
    raise AssertionError(f"not within half a minute: {what}")


def test_appended_records_become_visible_and_are_sealed(tmp_path: Path) -> None:
    """After a restart they are read from files."""
    with running(tmp_path) as node:
        node.add(*lines(0, 500))
        wait_until(lambda: node.tier.watermark(TOPIC) == 500, "visible")
        wait_until(
            lambda: all(p.name != "open" for p in node.tier.pieces("logs")), "everything sealed"
        )
        assert sorted(places(node.tier.pieces("logs"))) == expected_places(500)
        check_pieces(node.tier)
    with running(tmp_path) as node:
        assert sorted(places(node.tier.pieces("logs"))) == expected_places(500)
        node.add(*lines(500, 501))
        wait_until(lambda: node.tier.watermark(TOPIC) == 501, "visible")
    assert not node.fatal


def test_queries_never_see_a_row_twice_or_a_gap(tmp_path: Path) -> None:
    """While rows are added, frozen, sealed, merged and evicted."""
    count = 3000
    with running(tmp_path) as node:
        producer = threading.Thread(target=lambda: node.add(*lines(0, count)))
        producer.start()
        seen = evicted = 0
        for look in range(60_000):
            found = sorted(places(node.tier.pieces("logs")))
            if found:
                (first, _), (last, _) = found[0], found[-1]
                assert found == expected_places(last + 1)[2 * first :]
                assert last + 1 >= seen, "it went back"
                seen = last + 1
            if look % 10 == 0:
                evicted += node.tier.evict_below(TOPIC, seen - 500)
            if seen == count and evicted:
                break
            time.sleep(0.0005)
        producer.join()
        assert seen == count and evicted and not node.fatal


def test_evicted_files_are_readable_while_held(tmp_path: Path) -> None:
    """A running query continues although the file is deleted."""
    with running(tmp_path) as node:
        node.add(*lines(0, 300))
        wait_until(lambda: node.tier.watermark(TOPIC) == 300, "visible")
        wait_until(lambda: "open" not in [p.name for p in node.tier.pieces("logs")], "sealed")
        held = node.tier.pieces("logs")
        node.tier.evict_below(TOPIC, 300)
        assert not list((tmp_path / FOLDER).glob("*.arrow"))
        node.tier.release_memory()
        assert sorted(places(held)) == expected_places(300)


def test_a_dead_worker_is_reported(tmp_path: Path) -> None:

    def exhausted(_: str, __: Sequence[ExportRequest]) -> Decoded:
        raise MemoryError("no more")

    with running(tmp_path, exhausted) as node:
        node.add(*lines(0, 1))
        wait_until(lambda: bool(node.fatal), "told")
        assert isinstance(node.fatal[0], MemoryError)


def test_releasing_memory_does_not_affect_readers(tmp_path: Path) -> None:
    with running(tmp_path) as node:
        node.add(*lines(0, 300))
        wait_until(lambda: node.tier.watermark(TOPIC) == 300, "visible")
        wait_until(lambda: "open" not in [p.name for p in node.tier.pieces("logs")], "sealed")
        for _ in range(3):
            assert sorted(places(node.tier.pieces("logs"))) == expected_places(300)
            node.tier.release_memory()


@pytest.mark.parametrize("count", [0, 1])
def test_close_ends_both_threads(tmp_path: Path, count: int) -> None:
    before = threading.active_count()
    with running(tmp_path) as node:
        node.add(*lines(0, count))
    assert threading.active_count() == before
