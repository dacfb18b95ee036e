"""Disk, time and chance are passed in, so that a seed replays a crash."""

from __future__ import annotations

import ast

import pytest

from tests.house.sources import Source, house, references_of, report

DISK_SEAM = "frazil.disk.files"
STAGE_SEAM = "frazil.load.stages.local_folder"
TAIL_SEAM = "frazil.connectors.files.local_files"
"""Files of others, below a root that they may change at any time: not storage of ours."""
MEMORY_SEAM = "frazil.disk.write_buffer"
"""It maps memory without a file."""
TIME_SEAM = "frazil.model.time"


def dotted(library: str, names: str) -> set[str]:
    return {f"{library}.{name}" for name in names.split()}


STORAGE = {
    "open",
    *dotted("io", "open"),
    *dotted("os", "open fdopen write writev pwrite pwritev pread preadv sendfile"),
    *dotted("os", "fsync fdatasync sync truncate ftruncate posix_fallocate copy_file_range"),
    *dotted("os", "rename renames replace unlink remove removedirs rmdir link symlink"),
    *dotted("os", "mkdir makedirs listdir scandir walk statvfs"),
    *dotted("fcntl", "flock lockf"),
    *dotted("mmap", "mmap"),
}
"""What reads or changes files behind the back of `Disk`."""

STORAGE_LIBRARIES = {"shutil", "tempfile"}

PATH_WRITES = {"write_bytes", "write_text", "touch", "symlink_to", "hardlink_to"}
"""Methods that only `Path` has, so they are found on any expression. The others (`rename`,
`unlink`, `open`) are also words of `Disk`: those are the linter's and the reader's to see."""

TIME_AND_CHANCE = {
    *dotted("time", "time time_ns monotonic monotonic_ns perf_counter perf_counter_ns sleep"),
    *dotted("datetime.datetime", "now utcnow today"),
    *dotted("datetime.date", "today"),
    *dotted("os", "urandom getrandom"),
    *dotted("uuid", "uuid1 uuid4"),
}
"""What makes two runs with one seed differ."""

CHANCE_LIBRARIES = {"random", "secrets"}


def storage_findings(source: Source) -> list[str]:
    """Storage calls that a simulated disk would not see."""
    if source.module in (DISK_SEAM, STAGE_SEAM, TAIL_SEAM, MEMORY_SEAM):
        return []
    tree = source.tree()
    own = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    advice = f"storage goes through Disk, in {DISK_SEAM}"
    return [
        f"{where}: uses {name}; {advice}"
        for name, where in references_of(source)
        if name not in own and (name in STORAGE or _inside(name, STORAGE_LIBRARIES))
    ] + [
        f"{source.at(node)}: uses .{node.attr}; {advice}"
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and node.attr in PATH_WRITES
    ]


def time_findings(source: Source) -> list[str]:
    """Clocks and dice that a seed does not control."""
    if source.module == TIME_SEAM:
        return []
    return [
        f"{where}: uses {name}; take a Clock or a Rand from the caller, see {TIME_SEAM}"
        for name, where in references_of(source)
        if name in TIME_AND_CHANCE or _inside(name, CHANCE_LIBRARIES)
    ]


def _inside(name: str, libraries: set[str]) -> bool:
    library, _, rest = name.partition(".")
    return library in libraries and bool(rest)


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("import os\nos.getpid()\nos.path.join('a', 'b')", 0),
        ("disk.open('a')\ndisk.rename('a', 'b')\ndisk.unlink('b')\nfile.truncate(0)", 0),
        ("class Log:\n    @classmethod\n    def open(cls): ...\nLog.open()", 0),
        ("def open(folder): ...\nopen('data')", 0),
        ("Path('a.toml').read_bytes()", 0),
        ("import os\nos.fsync(3)", 1),
        ("import os as system\nsystem.rename('a', 'b')", 1),
        ("from os import unlink as gone\ngone('a')", 1),
        ("import os\nsync = os.fdatasync", 1),
        ("with open('a') as file: ...", 1),
        ("import io\nio.open('a')", 1),
        ("(folder / 'a').write_text('x')", 1),
        ("import shutil\nshutil.rmtree('a')", 1),
    ],
)
def test_the_storage_rule_sees(text: str, count: int) -> None:
    """A call that goes around the disk is found, and one through it is not."""
    assert len(storage_findings(Source(module="frazil.log.segment", text=text))) == count
    assert not storage_findings(Source(module=DISK_SEAM, text=text))


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("clock.sleep(1)\nclock.wall_ms()\nrand.random()", 0),
        ("import threading\nthreading.Condition().wait(1)", 0),
        ("from datetime import datetime, UTC\ndatetime.fromtimestamp(0, UTC)", 0),
        ("import time\ntime.strftime('%Y')", 0),
        ("import time\ntime.time()", 1),
        ("from time import monotonic_ns\nmonotonic_ns()", 1),
        ("import time as t\nt.sleep(1)", 1),
        ("import time\nnow = time.time", 1),
        ("from datetime import datetime\ndatetime.now()", 1),
        ("import datetime as dt\ndt.datetime.now(dt.UTC)", 1),
        ("import random\nrandom.Random(1)", 1),
        ("from random import choice\nchoice([1])", 1),
        ("import uuid\nuuid.uuid4()", 1),
    ],
)
def test_the_time_rule_sees(text: str, count: int) -> None:
    """A clock or a die of the machine is found, and one that was passed in is not."""
    assert len(time_findings(Source(module="frazil.log.writer", text=text))) == count
    assert not time_findings(Source(module=TIME_SEAM, text=text))


def test_storage_goes_through_the_disk() -> None:
    """The simulated disk sees every storage call, so it can fail every one of them."""
    findings = [line for source in house() for line in storage_findings(source)]
    assert not findings, report(findings)


def test_time_and_chance_are_passed_in() -> None:
    """Two runs with one seed are the same run."""
    findings = [line for source in house() for line in time_findings(source)]
    assert not findings, report(findings)
