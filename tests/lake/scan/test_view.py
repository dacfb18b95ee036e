"""What queries see of the tables: the current snapshots, with the offsets that they hold."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from frazil.errors import Unavailable, Unknown
from frazil.lake import LakeConfig, LakeView
from frazil.lake.scan import manifests as reading
from frazil.lake.scan.view import NAMES
from tests.lake.append.test_appender import ROWS, SMALL, World
from tests.lake.append.test_appender import world as world  # a fixture

LOGS = ("otlp_logs", 0)


@pytest.fixture
def view(world: World) -> Iterator[LakeView]:
    view = LakeView(SMALL, world.folder)
    yield view
    view.close()


def maintained(world: World) -> None:
    """A snapshot like those of maintenance, which knows nothing of offsets."""
    table = world.catalog.load_table("frazil.logs")
    with table.transaction() as transaction, transaction.update_snapshot().fast_append():
        pass


def expired(world: World, count: int) -> None:
    """The oldest snapshots are gone."""
    table = world.catalog.load_table("frazil.logs")
    gone = [snapshot.snapshot_id for snapshot in table.metadata.snapshots[:count]]
    table.maintenance.expire_snapshots().by_ids(gone).commit()


def test_no_catalog_is_no_rows(tmp_path: Path) -> None:
    """And none is made by looking."""
    view = LakeView(LakeConfig(), tmp_path)
    pinned = view.pin()
    assert [table.files for table in pinned.tables.values()] == [()] * len(NAMES)
    assert pinned.held("logs", *LOGS) == 0
    assert list(tmp_path.iterdir()) == []
    view.close()


def test_what_is_committed_is_seen(world: World, view: LakeView) -> None:
    """After the next look, and not before: whoever has pinned sees one moment."""
    appender = world.open()
    first = view.pin()
    world.add(200)
    appender.append()
    assert view.pin() is first
    view.refresh()
    table = view.pin().tables["logs"]
    assert table.row_count == 200 * ROWS
    assert table.offsets == {LOGS: 200}
    assert view.held("logs", *LOGS) == 200
    assert min(file.bounds["_offset"][0] for file in table.files) == 0
    assert max(file.bounds["_offset"][1] for file in table.files) == 199
    assert all((table.root + file.path).startswith("/") for file in table.files)
    assert first.tables["logs"].files == ()


def test_a_manifest_is_read_once(
    world: World, view: LakeView, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each round adds one, and only that one is opened; nothing new is nothing to read."""
    read: list[str] = []
    original = reading._read_manifest

    def counting(table: Any, manifest: Any, root: str) -> Any:
        read.append(manifest.manifest_path)
        return original(table, manifest, root)

    monkeypatch.setattr(reading, "_read_manifest", counting)
    appender = world.open()
    for _ in range(3):
        world.add(5)
        appender.append()
        view.refresh()
    assert len(read) == len(set(read)) == 6
    before = view.pin().tables["logs"]
    assert view.refresh().tables["logs"] is before
    assert len(read) == 6


def test_maintenance_keeps_the_boundary(world: World, view: LakeView) -> None:
    """Its snapshots have no offsets: those before it have them, or else the table."""
    appender = world.open()
    for _ in range(3):
        world.add(5)
        appender.append()
    maintained(world)
    maintained(world)
    view.refresh()
    assert view.held("logs", *LOGS) == 15
    expired(world, 3)
    view.refresh()
    table = view.pin().tables["logs"]
    assert [snapshot.offsets for snapshot in table.snapshots] == [None, {LOGS: 15}]
    assert view.held("logs", *LOGS) == 15
    assert table.row_count == 15 * ROWS


def test_another_snapshot(world: World, view: LakeView) -> None:
    """Has its own files and offsets; one that is gone is unknown."""
    appender = world.open()
    for _ in range(2):
        world.add(5)
        appender.append()
    first = view.refresh().tables["logs"].snapshots[0].snapshot_id
    table = view.at("logs", first)
    assert (table.row_count, table.offsets) == (5 * ROWS, {LOGS: 5})
    with pytest.raises(Unknown, match="no snapshot 7"):
        view.at("logs", 7)


def test_a_catalog_that_cannot_be_read(tmp_path: Path) -> None:
    """Is no empty catalog: rows may be in it."""
    (tmp_path / "lake").mkdir()
    (tmp_path / "lake" / "catalog.db").write_bytes(b"this is no database, whatever its name is")
    view = LakeView(LakeConfig(), tmp_path)
    with pytest.raises(Unavailable, match="does not answer"):
        view.pin()
    with pytest.raises(Unavailable, match="does not answer"):
        view.pin()
    view.close()


def test_the_last_view_outlives_its_catalog(world: World, view: LakeView) -> None:
    """What was seen stays right: the rows that came since are in the hot tier."""
    appender = world.open()
    world.add(5)
    appender.append()
    before = view.refresh()
    world.add(5)
    appender.append()
    location = world.catalog.load_table("frazil.logs").metadata_location
    path = Path(location.removeprefix("file://"))
    hidden = path.rename(path.with_suffix(".hidden"))
    with pytest.raises(Unavailable):
        view.refresh()
    assert view.pin() is before
    hidden.rename(path)
    assert view.refresh().held("logs", *LOGS) == 10
