"""LakeView pins the current snapshots with the offsets that they hold."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from frazil.errors import Unavailable, Unknown
from frazil.lake import LakeView
from frazil.lake.scan import manifests
from frazil.lake.scan.view import NAMES
from frazil.settings import LakeConfig
from tests.lake.append.test_appender import ROWS, SMALL, World
from tests.lake.append.test_appender import world as world  # a fixture

LOGS = ("otlp_logs", 0)


@pytest.fixture
def view(world: World) -> Iterator[LakeView]:
    view = LakeView(SMALL, world.folder)
    yield view
    view.close()


def commit_without_offsets(world: World) -> None:
    """Commit a snapshot without offsets, like maintenance does."""
    table = world.catalog.load_table("frazil.logs")
    with table.transaction() as transaction, transaction.update_snapshot().fast_append():
        pass


def expire(world: World, count: int) -> None:
    """Expire the oldest snapshots."""
    table = world.catalog.load_table("frazil.logs")
    gone = [snapshot.snapshot_id for snapshot in table.metadata.snapshots[:count]]
    table.maintenance.expire_snapshots().by_ids(gone).commit()


def test_without_a_catalog_there_are_no_rows(tmp_path: Path) -> None:
    """Reading does not create one."""
    view = LakeView(LakeConfig(), tmp_path)
    pinned = view.pin()
    assert [table.files for table in pinned.tables.values()] == [()] * len(NAMES)
    assert pinned.held("logs", *LOGS) == 0
    assert list(tmp_path.iterdir()) == []
    view.close()


def test_a_commit_is_visible_after_a_refresh(world: World, view: LakeView) -> None:
    """A pinned view does not change."""
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
    """Each commit adds one manifest per table, and only new ones are read."""
    read: list[str] = []
    original = manifests._read_manifest

    def counting(table: Any, manifest: Any, root: str) -> Any:
        read.append(manifest.manifest_path)
        return original(table, manifest, root)

    monkeypatch.setattr(manifests, "_read_manifest", counting)
    appender = world.open()
    for _ in range(3):
        world.add(5)
        appender.append()
        view.refresh()
    assert len(read) == len(set(read)) == 6
    before = view.pin().tables["logs"]
    assert view.refresh().tables["logs"] is before
    assert len(read) == 6


def test_maintenance_keeps_the_offsets(world: World, view: LakeView) -> None:
    """Its snapshots have none; ancestors or the table property have them."""
    appender = world.open()
    for _ in range(3):
        world.add(5)
        appender.append()
    commit_without_offsets(world)
    commit_without_offsets(world)
    view.refresh()
    assert view.held("logs", *LOGS) == 15
    expire(world, 3)
    view.refresh()
    table = view.pin().tables["logs"]
    assert [snapshot.offsets for snapshot in table.snapshots] == [None, {LOGS: 15}]
    assert view.held("logs", *LOGS) == 15
    assert table.row_count == 15 * ROWS


def test_an_older_snapshot_has_its_own_files_and_offsets(world: World, view: LakeView) -> None:
    appender = world.open()
    for _ in range(2):
        world.add(5)
        appender.append()
    first = view.refresh().tables["logs"].snapshots[0].snapshot_id
    table = view.at("logs", first)
    assert (table.row_count, table.offsets) == (5 * ROWS, {LOGS: 5})
    with pytest.raises(Unknown, match="no snapshot 7"):
        view.at("logs", 7)


def test_an_unreadable_catalog_is_an_error(tmp_path: Path) -> None:
    """It is not treated as empty."""
    (tmp_path / "lake").mkdir()
    (tmp_path / "lake" / "catalog.db").write_bytes(b"this is no database, whatever its name is")
    view = LakeView(LakeConfig(), tmp_path)
    with pytest.raises(Unavailable, match="does not respond"):
        view.pin()
    with pytest.raises(Unavailable, match="does not respond"):
        view.pin()
    view.close()


def test_the_last_view_stays_if_the_catalog_fails(world: World, view: LakeView) -> None:
    """It is still correct: newer rows are in the hot tier."""
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
