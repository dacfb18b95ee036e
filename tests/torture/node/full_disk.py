"""A node with Spark on a small disk that fills: by its own tables, and by another program.

    load ──────────────────────────────────────────────────────────────> all acknowledged rows
         fill, then another program takes the rest, then it gives it back; several times

On a loop-mounted ext4 of each size, so it needs root. The load does not compress: the tables of a
small disk fill it for good, and from then on requests must be refused. What was acknowledged is
complete at the end, in SQL and, after a flush, in Iceberg: there is always room for one flush.

    FULL_DISK_SIZES    sizes in MB; 100,1000,10000 unless it is set
    FULL_DISK_MINUTES  minutes of load on each; 10 unless it is set
"""

from __future__ import annotations

import base64
import http.client
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from random import Random

import frazil
from frazil.client import Client
from frazil.errors import FrazilError
from frazil.lake.catalog.catalog import open_catalog
from frazil.settings import LakeConfig
from tests.clients.node import Node
from tests.conformance.cases import log, logs
from tests.conformance.clients import PROTOBUF
from tests.torture.checker import Verdict
from tests.torture.report import Report

SIZES_MB = "100,1000,10000"
MINUTES = "10"
MB = 1_000_000
MB_PER_S = {100: 2.0, 1000: 5.0, 10_000: 15.0}
"""Load by size of the disk, up to that size."""
ROWS = 250
"""Rows of a request."""
BODY_BYTES = 750
"""Random bytes of a row; a third more as text."""
SENDERS = 3
FOREIGN_SHARE = 0.25
"""How much of each cycle another program holds the rest of the disk."""
FREE_SHARE = 0.2
"""With less of the disk a node may refuse requests for good: it keeps an eighth in reserve."""
RESUME_S_MAX = 60.0
"""From space on the disk to the next acknowledgement."""
VISIBLE_S_MAX = 60.0
LAKE_S_MAX = 150.0
"""From space on the disk to the next commit: the pause after failures, and a start of Spark."""
UNMOUNT_S_MAX = 60.0
REFUSALS = frozenset({429, 503})
POLL_S = 0.25
MUST_FIRE = ("acknowledged", "refused", "taken", "given_back", "resumed")


class Load:
    """Senders of numbered requests, each repeated until it is acknowledged."""

    def __init__(self, port: int, mb_per_s: float, seed: int) -> None:
        self.acknowledged: set[str] = set()
        self.maybe: set[str] = set()
        """Sent without an answer."""
        self.outcomes = Counter[str]()
        self.last_ack_s = 0.0
        self.unexpected: list[str] = []
        self._port = port
        self._pause_s = SENDERS * ROWS * BODY_BYTES * 4 / 3 / (mb_per_s * MB)
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._threads = [
            threading.Thread(target=self._run, args=(number, Random(f"{seed} {number}")))
            for number in range(SENDERS)
        ]
        for thread in self._threads:
            thread.start()

    def _run(self, sender: int, chance: Random) -> None:
        number = 0
        due = time.monotonic()
        while not self._stop.wait(max(0.0, due - time.monotonic())):
            due = max(due + self._pause_s, time.monotonic() - 1.0)
            number += 1
            name = f"{sender}/{number}"
            body = request_of(name, chance)
            while not self._send(name, body) and not self._stop.wait(POLL_S):
                continue

    def _send(self, name: str, body: bytes) -> bool:
        """Send a request once. Returns whether it was acknowledged."""
        try:
            with closing(http.client.HTTPConnection("127.0.0.1", self._port, timeout=30)) as to:
                to.request("POST", "/v1/logs", body, {"Content-Type": PROTOBUF})
                response = to.getresponse()
                response.read()
        except OSError as error:
            with self._lock:
                self.maybe.add(name)
                self.unexpected.append(f"{name}: {error!r}")
            return False
        with self._lock:
            if response.status == 200:
                self.acknowledged.add(name)
                self.outcomes["acknowledged"] += 1
                self.last_ack_s = time.monotonic()
            elif response.status in REFUSALS:
                self.outcomes["refused"] += 1
            else:
                self.unexpected.append(f"{name}: status {response.status}")
        return response.status == 200

    def stop(self) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()


def request_of(name: str, chance: Random) -> bytes:
    """A request whose rows carry its name and their number, with text that does not compress."""
    records = []
    for row in range(ROWS):
        record = log(row, event_name=name, flags=row)
        record.body.string_value = base64.b64encode(chance.randbytes(BODY_BYTES)).decode()
        records.append(record)
    return logs(*records)


@contextmanager
def mounted(folder: Path, size_mb: int) -> Iterator[Path]:
    """A file system of this size. Raises `NotMounted` if it cannot be mounted."""
    image, disk = folder / "disk.img", folder / "disk"
    disk.mkdir()
    with image.open("wb") as file:
        file.truncate(size_mb * MB)
    try:
        _call("mkfs.ext4", "-q", "-m", "0", str(image))
        _call("mount", "-o", "loop", str(image), str(disk))
    except (OSError, subprocess.CalledProcessError) as error:
        raise NotMounted(str(error)) from error
    try:
        yield disk
    finally:
        _unmount(disk)
        image.unlink()


class NotMounted(Exception):
    """A file system cannot be mounted here."""


def _call(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True)


def _unmount(disk: Path) -> None:
    """Unmount, once the last process of a node that was killed has ended."""
    deadline = time.monotonic() + UNMOUNT_S_MAX
    while True:
        try:
            _call("umount", str(disk))
        except subprocess.CalledProcessError:
            if time.monotonic() > deadline:
                raise
            time.sleep(POLL_S)
        else:
            return


@contextmanager
def foreign_file(disk: Path) -> Iterator[None]:
    """Another program has all free space, and keeps taking what becomes free."""
    path = disk / "foreign"
    stop = threading.Event()

    def take() -> None:
        with path.open("ab") as file:
            while True:
                free = shutil.disk_usage(disk).free
                if free > 0:
                    try:
                        os.posix_fallocate(file.fileno(), file.tell(), free)
                        file.seek(free, os.SEEK_CUR)
                    except OSError:  # the node was faster
                        file.seek(0, os.SEEK_END)
                if stop.wait(1.0):
                    return

    thread = threading.Thread(target=take)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
        path.unlink()


class DiskTorture:
    """One node on one disk."""

    def __init__(self, disk: Path, node: Node, load: Load, report: Report) -> None:
        self._disk = disk
        self._node = node
        self._load = load
        self._report = report
        self.verdict = Verdict()

    def run(self, cycles: int, seconds: float) -> None:
        """Let another program take the disk, and give it back, several times."""
        each_s = seconds / cycles
        for cycle in range(cycles):
            time.sleep(each_s * (1 - FOREIGN_SHARE) / 2)
            with foreign_file(self._disk):
                self._note("taken")
                time.sleep(each_s * FOREIGN_SHARE)
            self._note("given_back")
            back_s = time.monotonic()
            commits = self._commits()
            if not self._is_filled():
                self._await_ack(cycle, back_s)
                self._await_commit(cycle, commits)
            time.sleep(max(0.0, each_s * (1 - FOREIGN_SHARE) / 2 - (time.monotonic() - back_s)))
            self._describe(cycle)
        self._check_alive()

    def _is_filled(self) -> bool:
        """Whether the node itself has filled the disk, so that space did not come."""
        usage = shutil.disk_usage(self._disk)
        return usage.free < FREE_SHARE * usage.total

    def _megabytes(self, name: str) -> int:
        """The size of a folder of the node."""
        size = 0
        for path in (self._node.folder / name).rglob("*"):
            try:
                size += path.stat().st_blocks * 512
            except OSError:  # removed meanwhile
                continue
        return size // MB

    def _await_ack(self, cycle: int, back_s: float) -> None:
        while self._load.last_ack_s <= back_s:
            if time.monotonic() - back_s > RESUME_S_MAX:
                self.verdict.add("untrue", f"cycle {cycle}: no acknowledgement after space came")
                return
            time.sleep(POLL_S)
        self._note("resumed")
        print(
            f"  acknowledged {self._load.last_ack_s - back_s:.1f} s after space came",
            file=sys.stderr,
        )

    def _await_commit(self, cycle: int, before: int) -> None:
        begin = time.monotonic()
        while self._commits() <= before:
            if time.monotonic() - begin > LAKE_S_MAX:
                self.verdict.add("untrue", f"cycle {cycle}: no commit after space came")
                return
            time.sleep(POLL_S)
        self._note("committed")
        print(f"  committed {time.monotonic() - begin:.1f} s after that", file=sys.stderr)

    def _commits(self) -> int:
        """The number of snapshots of the table; 0 while nobody answers."""
        try:
            with frazil.connect(self._node.url) as client:
                text = "SELECT count(*) FROM snapshots WHERE table_name = 'logs'"
                ((count,),) = client.sql(text).fetchall()
        except FrazilError:
            return 0
        return int(count)

    def _describe(self, cycle: int) -> None:
        usage = shutil.disk_usage(self._disk)
        sizes = {name: self._megabytes(name) for name in ("log", "hot", "lake")}
        print(
            f"  cycle {cycle}: {dict(self._load.outcomes)}, {usage.free // MB} MB free, {sizes}",
            file=sys.stderr,
        )

    def _check_alive(self) -> None:
        if self._node.process.poll() is not None:
            self.verdict.add("untrue", f"the writer ended: {self._node.errors()[-2000:]}")

    def judge(self) -> None:
        """Check the rows of SQL, then flush, and check those of the table."""
        with frazil.connect(self._node.url) as client:
            text = (
                "SELECT event_name, count(*), sum(flags), sum(flags * flags) FROM logs GROUP BY 1"
            )
            deadline = time.monotonic() + VISIBLE_S_MAX
            while True:
                found = client.sql(text).fetchall()
                is_late = time.monotonic() > deadline
                if is_late or len(found) >= len(self._load.acknowledged):
                    break
                time.sleep(POLL_S)
            # Sums tell whether all rows are different, in less memory than counting those takes.
            whole = (ROWS, sum(range(ROWS)), sum(number * number for number in range(ROWS)))
            by_name = {name: tuple(sums) for name, *sums in found}
            self._judge(
                "SQL",
                {
                    name: (sums[0], sums[0] - (sums[0] == ROWS and sums != whole))
                    for name, sums in by_name.items()
                },
            )
            if not self._is_flushed(client):
                return
        if self._node.stop() != 0:
            self.verdict.add("untrue", "the node did not stop cleanly")
        config = LakeConfig()
        with closing(open_catalog(config, self._node.folder)) as catalog:
            scan = catalog.load_table((config.namespace, "logs")).scan(
                selected_fields=("event_name", "flags")
            )
            rows = scan.to_arrow()
        counts = Counter(rows["event_name"].to_pylist())
        pairs = set(zip(rows["event_name"].to_pylist(), rows["flags"].to_pylist(), strict=True))
        different = Counter(name for name, _ in pairs)
        self._judge("PyIceberg", {name: (counts[name], different[name]) for name in counts})

    def _is_flushed(self, client: Client) -> bool:
        """Whether everything is in the table. The first try may end for lack of space, which makes
        the node remove what it can do without."""
        deadline = time.monotonic() + LAKE_S_MAX
        while True:
            try:
                client.flush()
            except FrazilError as error:
                if time.monotonic() > deadline:
                    self._describe(-1)
                    self.verdict.add("untrue", f"no flush at the end: {error}")
                    return False
                print(f"  {error}", file=sys.stderr)
                time.sleep(4 * POLL_S)
            else:
                return True

    def _judge(self, where: str, found: dict[str, tuple[int, int]]) -> None:
        load = self._load
        for name in load.acknowledged - found.keys():
            self.verdict.add("lost", f"{where}: {name}")
        for name, (count, different) in found.items():
            if count > ROWS or count > different:
                self.verdict.add("duplicate", f"{where}: {name} has {count} rows")
            elif count < ROWS:
                self.verdict.add("hole", f"{where}: {name} has {count} rows")
            if name not in load.acknowledged and name not in load.maybe:
                self.verdict.add("refused", f"{where}: {name}")
        self._note(f"rows_by_{where.lower()}", sum(count for count, _ in found.values()))

    def _note(self, what: str, count: int = 1) -> None:
        self._report.faults[what] += count


def run(cycles: int, seed: int) -> Report:
    """Fill each disk, and let another program take the rest of it `cycles` times."""
    report = Report("full_disk", seed, must_fire=MUST_FIRE)
    minutes = float(os.environ.get("FULL_DISK_MINUTES", MINUTES))
    for size_mb in map(int, os.environ.get("FULL_DISK_SIZES", SIZES_MB).split(",")):
        with tempfile.TemporaryDirectory() as scratch:
            try:
                with mounted(Path(scratch), size_mb) as disk:
                    _fill(disk, size_mb, cycles, 60 * minutes, report)
            except NotMounted as error:
                report.skipped = f"a file system cannot be mounted here, which needs root: {error}"
                return report
    return report


def _fill(disk: Path, size_mb: int, cycles: int, seconds: float, report: Report) -> None:
    mb_per_s = next((rate for size, rate in MB_PER_S.items() if size_mb <= size), MB_PER_S[10_000])
    print(f"{size_mb} MB, {mb_per_s} MB/s for {seconds:.0f} s", file=sys.stderr)
    with Node(disk / "data") as node:
        load = Load(node.http_port, mb_per_s, report.seed)
        torture = DiskTorture(disk, node, load, report)
        try:
            torture.run(cycles, seconds)
        finally:
            load.stop()
        torture.judge()
        print(f"  {dict(load.outcomes)}", file=sys.stderr)
    for problem in load.unexpected:
        torture.verdict.add("untrue", problem)
    report.take(torture.verdict, load.outcomes, f"{size_mb} MB:")
