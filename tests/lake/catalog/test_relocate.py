"""A data folder may be copied and moved: its tables are found where it is now."""

from __future__ import annotations

import hashlib
import random
import shutil
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from pyiceberg.table import Table

from frazil.disk import RealDisk
from frazil.errors import Conflict
from frazil.lake import Appender
from frazil.lake.append.log_source import LogSource
from frazil.lake.catalog.catalog import open_catalog
from frazil.lake.catalog.relocate import relocate
from frazil.log import Log, Record, append_of_records
from frazil.model import Rand, Signal, SystemClock
from frazil.settings import LakeConfig, TopicConfig
from tests.conformance.cases import log as log_record
from tests.conformance.cases import logs
from tests.lake.inline_tasks import run_inline
from tests.lake.table_builder import CONFIG

COMMITS = 3
ROWS = 2
"""Per request; a commit has one request."""


@contextmanager
def filled(folder: Path) -> Iterator[tuple[Log, Appender]]:
    """A log and its appender, which runs without Spark."""
    clock, rand = SystemClock(), random.SystemRandom()
    with (
        Log.open(RealDisk(folder), clock=clock, rand=rand) as log,
        closing(open_catalog(CONFIG, folder)) as catalog,
    ):
        for signal in Signal:
            log.create_topic(signal.topic, TopicConfig(awaits_lake=True))
        source = LogSource(log, folder)
        yield (
            log,
            Appender.open(source, catalog, CONFIG, run=run_inline, clock=clock, rand=rand),
        )


def commit(log: Log, appender: Appender) -> None:
    """Append one request and commit it."""
    body = logs(*(log_record(n, event_name=str(n)) for n in range(ROWS)))
    record = Record(offset=0, timestamp_ms=1, key=None, value=body)
    log.append(Signal.LOGS.topic, append_of_records([record])).result()
    while appender.append():
        pass


def fill(folder: Path) -> None:
    """A folder with tables, one of which has several snapshots."""
    with filled(folder) as (log, appender):
        for _ in range(COMMITS):
            commit(log, appender)


def offsets(table: Table, snapshot: int | None = None) -> list[int]:
    found = table.scan(snapshot_id=snapshot).to_arrow()
    return sorted(found["_offset"].to_pylist())


def contents(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file()
    }


def paths(table: Table) -> list[str]:
    """Every place that the table's metadata names."""
    found = [table.location(), table.metadata_location]
    for snapshot in table.snapshots():
        found.append(snapshot.manifest_list)
        for manifest in snapshot.manifests(table.io):
            found.append(manifest.manifest_path)
            assert manifest.manifest_length == Path(manifest.manifest_path[7:]).stat().st_size
            found += [
                entry.data_file.file_path for entry in manifest.fetch_manifest_entry(table.io)
            ]
    return found


@pytest.mark.parametrize("way", ["copied", "moved", "linked"])
def test_the_tables_of_a_folder_follow_it(way: str, tmp_path: Path) -> None:
    """All rows and snapshots; the original, if there still is one, is not touched."""
    old, new = tmp_path / "old", tmp_path / "a longer name" / "new"
    new.parent.mkdir()
    fill(old)
    before = contents(old)
    if way == "moved":
        old.rename(new)
    else:
        shutil.copytree(old, new)
        if way == "linked":  # cp -al
            for path in new.rglob("*.*"):
                if path.is_file() and "warehouse" in path.parts:
                    path.unlink()
                    path.hardlink_to(old / path.relative_to(new))
    assert "frazil.logs" in relocate(CONFIG, new, Rand(7))
    assert relocate(CONFIG, new, Rand(8)) == [], "once is enough"
    whole = [offset for offset in range(COMMITS) for _ in range(ROWS)]
    with closing(open_catalog(CONFIG, new)) as catalog:
        table = catalog.load_table("frazil.logs")
        assert offsets(table) == whole
        for number, snapshot in enumerate(table.snapshots()):
            assert offsets(table, snapshot.snapshot_id) == whole[: ROWS * (number + 1)]
        assert all(path.startswith(f"file://{new}/lake/warehouse/") for path in paths(table))
    with filled(new) as (log, appender):
        commit(log, appender)
    with closing(open_catalog(CONFIG, new)) as catalog:
        assert offsets(catalog.load_table("frazil.logs")) == [*whole, *[COMMITS] * ROWS]
    if way != "moved":
        assert contents(old) == before
        assert relocate(CONFIG, old, Rand(9)) == []
        with closing(open_catalog(CONFIG, old)) as catalog:
            assert offsets(catalog.load_table("frazil.logs")) == whole


def test_tables_that_are_elsewhere_are_refused(tmp_path: Path) -> None:
    """Such as those of a folder that was copied without its warehouse: nothing is written there."""
    old, new = tmp_path / "old", tmp_path / "new"
    fill(old)
    (new / "lake").mkdir(parents=True)
    shutil.copy2(old / "lake" / "catalog.db", new / "lake" / "catalog.db")
    before = contents(old)
    with pytest.raises(Conflict, match=r"outside this data folder.*set lake\.warehouse = file://"):
        relocate(CONFIG, new, Rand(7))
    assert contents(old) == before
    named = LakeConfig(warehouse=f"{old}/lake/warehouse")
    assert relocate(named, new, Rand(7)) == [], "it is where the settings say"


def test_a_folder_without_tables_is_left_alone(tmp_path: Path) -> None:
    assert relocate(CONFIG, tmp_path, Rand(7)) == []
    with closing(open_catalog(CONFIG, tmp_path)):
        assert relocate(CONFIG, tmp_path, Rand(7)) == []
