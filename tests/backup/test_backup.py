"""Backups of a data folder with a log and tables: complete, verified, independent."""

from __future__ import annotations

import errno
import json
import os
import random
import shutil
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from frazil.backup import CreatedBackup, create, create_backup, restore_backup, verify_backup
from frazil.disk import FileCopier, RealDisk
from frazil.errors import (
    Conflict,
    Corrupt,
    FrazilError,
    InvalidSetting,
    Malformed,
    Overloaded,
    Unavailable,
    Unknown,
)
from frazil.lake.catalog.catalog import open_catalog
from frazil.lake.catalog.relocate import relocate
from frazil.lake.lake_copy import LakeCopy
from frazil.log import LogCopy
from frazil.model import Rand, SystemClock
from frazil.settings import LakeConfig
from tests.lake.catalog.test_relocate import (
    COMMITS,
    ROWS,
    commit,
    contents,
    fill,
    filled,
    offsets,
)
from tests.lake.table_builder import CONFIG

MEMORY = Path("/dev/shm")
"""Another file system, on most machines."""


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with tables, dashboards, readers, and what is derived. Do not change it."""
    folder = tmp_path_factory.mktemp("original") / "data"
    fill(folder)
    for path in ("dashboards/shop.json", "lake/readers/mine.progress", "hot/logs/0/1.arrow"):
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(path)
    (folder / "lake/scratch").mkdir()
    (folder / "lake/scratch/job").write_text("of Spark")
    return folder


def back_up(folder: Path, target: Path) -> CreatedBackup:
    return create_backup(
        folder, target, LakeConfig(), clock=SystemClock(), rand=random.SystemRandom()
    )


def rows_in(folder: Path) -> list[int]:
    """Return the offsets of all rows in the table of a folder."""
    relocate(CONFIG, folder, Rand(7))
    with closing(open_catalog(CONFIG, folder)) as catalog:
        return offsets(catalog.load_table("frazil.logs"))


def expected(commits: int) -> list[int]:
    return [offset for offset in range(commits) for _ in range(ROWS)]


def test_a_restored_folder_is_whole_and_independent(original: Path, tmp_path: Path) -> None:
    """Original and backup are not touched by what happens in it."""
    before = contents(original)
    done = back_up(original, tmp_path / "backup")
    saved = contents(tmp_path / "backup")
    assert done.linked_bytes > 0
    assert {"dashboards/shop.json", "lake/readers/mine.progress"} <= done.manifest.files.keys()
    assert not [path for path in done.manifest.files if path.startswith(("hot", "lake/scratch"))]
    assert "frazil.lock" not in done.manifest.files
    (logs,) = (each for each in done.manifest.tables if each.name == "frazil.logs")
    assert logs.next_offsets == {"otlp_logs": {"0": COMMITS}} and logs.snapshot_id
    verify_backup(tmp_path / "backup")
    restore_backup(tmp_path / "backup", tmp_path / "restored")
    assert (tmp_path / "restored/dashboards/shop.json").read_text() == "dashboards/shop.json"
    assert rows_in(tmp_path / "restored") == expected(COMMITS)
    with filled(tmp_path / "restored") as (log, appender):
        commit(log, appender)
    assert rows_in(tmp_path / "restored") == expected(COMMITS + 1)
    shutil.rmtree(tmp_path / "restored" / "lake")
    journals = {path for path in contents(original) if path.startswith("lake/catalog.db-")}
    assert {p: s for p, s in contents(original).items() if p not in journals} == before
    assert contents(tmp_path / "backup") == saved


def test_a_restored_folder_is_backed_up_like_any_other(original: Path, tmp_path: Path) -> None:
    """Before its first start, when the catalog names the original's files, and after."""
    back_up(original, tmp_path / "first")
    restore_backup(tmp_path / "first", tmp_path / "restored")
    back_up(tmp_path / "restored", tmp_path / "second")
    assert rows_in(tmp_path / "restored") == expected(COMMITS)
    back_up(tmp_path / "restored", tmp_path / "third")
    for name in ("second", "third"):
        restore_backup(tmp_path / name, tmp_path / f"from {name}")
    shutil.rmtree(tmp_path / "restored")
    for name in ("second", "third"):
        assert rows_in(tmp_path / f"from {name}") == expected(COMMITS)


def test_a_file_that_cannot_be_read_is_an_error(
    original: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: FileCopier, path: str) -> None:
        raise PermissionError(errno.EACCES, "Permission denied", path)

    monkeypatch.setattr(FileCopier, "copy", fail)
    message = "Permission denied.*run this as the user of the node"
    refused(Unavailable, message, original, tmp_path / "backup")
    monkeypatch.undo()
    back_up(original, tmp_path / "backup")
    monkeypatch.setattr(FileCopier, "copy", fail)
    with pytest.raises(Unavailable, match=message):
        restore_backup(tmp_path / "backup", tmp_path / "restored")


def test_a_backup_is_taken_while_the_folder_is_used(tmp_path: Path) -> None:
    """Commits go on between all steps: the log continues where the tables end."""
    folder = tmp_path / "data"
    with filled(folder) as (log, appender):
        commit(log, appender)

        class Busy(LakeCopy):
            def take(self):  # type: ignore[no-untyped-def]
                commit(log, appender)
                taken = super().take()
                commit(log, appender)
                return taken

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(create, "LakeCopy", Busy)
            done = back_up(folder, tmp_path / "backup")
        (logs,) = (each for each in done.manifest.tables if each.name == "frazil.logs")
        assert logs.next_offsets == {"otlp_logs": {"0": 2}}
        ends = {each.topic: each.end_offset for each in done.manifest.partitions}
        assert ends["otlp_logs"] == 3
    restore_backup(tmp_path / "backup", tmp_path / "restored")
    assert rows_in(tmp_path / "restored") == expected(2)
    with filled(tmp_path / "restored") as (_, appender):
        while appender.append():
            pass
    assert rows_in(tmp_path / "restored") == expected(3)


def test_a_log_that_is_trimmed_meanwhile_is_copied_again(
    original: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From the start, with the tables: a few times, then it is an error."""
    finish, failures = LogCopy.finish, iter([Conflict("trimmed")] * 2)

    def finish_later(copy: LogCopy):  # type: ignore[no-untyped-def]
        for failure in failures:
            raise failure
        return finish(copy)

    monkeypatch.setattr(LogCopy, "finish", finish_later)
    back_up(original, tmp_path / "backup")
    verify_backup(tmp_path / "backup")
    monkeypatch.setattr(create, "ATTEMPTS_MAX", 2)
    failures = iter([Conflict("trimmed")] * 2)
    with pytest.raises(Conflict, match="trimmed"):
        back_up(original, tmp_path / "another")
    assert [path.name for path in tmp_path.iterdir()] == ["backup"]


def test_a_table_file_that_vanishes_is_not_needed_any_more(
    original: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The catalog is read again, and files of the first attempt that it does not name are gone."""
    link, vanishing = FileCopier.link, iter([".parquet", ".avro", ".metadata.json"])
    awaited = next(vanishing)

    def link_unless_gone(copier: FileCopier, path: str) -> None:
        nonlocal awaited
        if awaited and path.endswith(awaited):
            awaited = next(vanishing, "")
            raise FileNotFoundError(path)
        link(copier, path)

    monkeypatch.setattr(FileCopier, "link", link_unless_gone)
    done = back_up(original, tmp_path / "backup")
    assert not awaited
    monkeypatch.undo()
    data = tmp_path / "backup" / "data"
    assert {path for path, _ in RealDisk(data).files()} == done.manifest.files.keys()
    restore_backup(tmp_path / "backup", tmp_path / "restored")
    assert rows_in(tmp_path / "restored") == expected(COMMITS)
    with pytest.MonkeyPatch.context() as patch:
        awaited, vanishing = ".parquet", iter([".parquet"] * 100)
        patch.setattr(FileCopier, "link", link_unless_gone)
        with pytest.raises(Conflict, match=r"missing in 20 attempts: .*parquet"):
            back_up(original, tmp_path / "another")
    assert not list(tmp_path.glob("another*"))


@pytest.fixture
def elsewhere(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder on another file system, a real one if there is one."""
    folder = MEMORY / f"frazil-test-{os.getpid()}"
    if not os.access(MEMORY, os.W_OK):
        pytest.skip("this machine has no second file system to write to")
    folder.mkdir()
    yield folder
    shutil.rmtree(folder)


def test_another_file_system_gets_copies(original: Path, elsewhere: Path, tmp_path: Path) -> None:
    """With a checksum for every file, there and back."""
    done = back_up(original, elsewhere / "backup")
    assert done.linked_bytes == 0
    assert all(file.sha256 for file in done.manifest.files.values())
    restore_backup(elsewhere / "backup", tmp_path / "restored")
    assert rows_in(tmp_path / "restored") == expected(COMMITS)


def test_a_file_system_without_links_gets_copies(
    original: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.EPERM, "no hard links here")

    monkeypatch.setattr(os, "link", refuse)
    assert back_up(original, tmp_path / "backup").linked_bytes == 0
    restore_backup(tmp_path / "backup", tmp_path / "restored")
    assert rows_in(tmp_path / "restored") == expected(COMMITS)


def refused(error: type[FrazilError], match: str, folder: Path, target: Path) -> None:
    """Check that a backup is refused and leaves nothing."""
    before = sorted(target.parent.iterdir())
    with pytest.raises(error, match=match):
        back_up(folder, target)
    assert sorted(target.parent.iterdir()) == before


def test_targets_that_cannot_be_are_refused(original: Path, tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    refused(Malformed, "there exists", original, tmp_path / "there")
    (tmp_path / "half.incomplete").mkdir()
    refused(Malformed, "still being written, or was interrupted", original, tmp_path / "half")
    refused(Malformed, "inside the data folder", original, original / "backup")
    refused(Unknown, "not a data folder of Frazil", tmp_path, tmp_path / "backup")


@pytest.mark.parametrize("name", ["catalog", "warehouse"])
def test_tables_elsewhere_are_refused(name: str, original: Path, tmp_path: Path) -> None:
    values = {"catalog": {"uri": "http://catalog"}, "warehouse": "s3://bucket"}
    lake = LakeConfig(**{name: values[name]})  # type: ignore[arg-type]
    with pytest.raises(InvalidSetting, match=rf"lake\.{name} is set"):
        create_backup(
            original, tmp_path / "backup", lake, clock=SystemClock(), rand=random.SystemRandom()
        )


def test_a_disk_without_room_is_refused_before_anything_is_written(
    original: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    back_up(original, tmp_path / "backup")
    monkeypatch.setattr(create, "free_bytes", lambda _: 1_000)
    refused(Overloaded, "1,000 free; free some space", original, tmp_path / "another")
    with pytest.raises(Overloaded, match="1,000 free"):
        restore_backup(tmp_path / "backup", tmp_path / "restored")
    assert not (tmp_path / "restored").exists()


def test_a_disk_that_fills_up_is_an_error_that_leaves_nothing(
    original: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    back_up(original, tmp_path / "backup")

    def fail(*_: object) -> None:
        raise OSError(errno.ENOSPC, "full")

    monkeypatch.setattr(FileCopier, "sync", fail)
    refused(Overloaded, "is full; free some space", original, tmp_path / "another")
    with pytest.raises(Overloaded, match="is full"):
        restore_backup(tmp_path / "backup", tmp_path / "restored")
    assert not (tmp_path / "restored").exists()


def test_a_half_backup_is_refused(original: Path, tmp_path: Path) -> None:
    """Without its manifest, or a folder that is no backup at all."""
    back_up(original, tmp_path / "backup")
    (tmp_path / "backup/backup.json").unlink()
    for folder in (tmp_path / "backup", original):
        with pytest.raises(Unknown, match=r"not a complete backup: it has no backup\.json"):
            restore_backup(folder, tmp_path / "restored")
    with pytest.raises(Malformed, match="not a folder"):
        restore_backup(tmp_path / "absent", tmp_path / "restored")
    assert not (tmp_path / "restored").exists()


@pytest.mark.parametrize("damage", ["missing", "short", "flipped"])
@pytest.mark.parametrize("path", ["log/otlp_logs/0/marks", "dashboards/shop.json"])
def test_a_damaged_file_is_named(damage: str, path: str, original: Path, tmp_path: Path) -> None:
    back_up(original, tmp_path / "backup")
    file = tmp_path / "backup/data" / path
    data = file.read_bytes()
    file.unlink()
    if damage != "missing":
        file.write_bytes(data[:-1] + (b"" if damage == "short" else bytes([data[-1] ^ 1])))
    for folder in (tmp_path / "restored", tmp_path / "empty"):
        with pytest.raises(Corrupt, match=f"{file} is damaged"):
            restore_backup(tmp_path / "backup", folder)
        with pytest.raises(Corrupt, match=f"{file} is damaged"):
            verify_backup(tmp_path / "backup")
    assert not (tmp_path / "restored").exists()


def test_a_table_file_of_the_wrong_size_is_named(original: Path, tmp_path: Path) -> None:
    """Hard links have no checksum, but a size."""
    done = back_up(original, tmp_path / "backup")
    path = next(path for path in done.manifest.files if path.endswith(".parquet"))
    file = tmp_path / "backup/data" / path
    data = file.read_bytes()
    file.unlink()
    file.write_bytes(data[:-1])
    with pytest.raises(Corrupt, match=f"{path} is damaged"):
        restore_backup(tmp_path / "backup", tmp_path / "restored")


@pytest.mark.parametrize(
    ("change", "error", "match"),
    [
        ({"format": 2}, Malformed, "has format 2"),
        ({"files": 7}, Corrupt, r"backup\.json is damaged"),
        ({"files": {"../outside": {"size_bytes": 1}}}, Corrupt, "leaves the folder"),
    ],
)
def test_a_manifest_that_cannot_be_used_is_refused(
    change: dict[str, object],
    error: type[FrazilError],
    match: str,
    original: Path,
    tmp_path: Path,
) -> None:
    back_up(original, tmp_path / "backup")
    path = tmp_path / "backup/backup.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(error, match=match):
        restore_backup(tmp_path / "backup", tmp_path / "restored")


def test_only_an_empty_folder_is_restored_to(original: Path, tmp_path: Path) -> None:
    """One with a file system's own folder is empty."""
    back_up(original, tmp_path / "backup")
    (tmp_path / "used").mkdir()
    (tmp_path / "used/note").touch()
    with pytest.raises(Malformed, match="used is not empty"):
        restore_backup(tmp_path / "backup", tmp_path / "used")
    with pytest.raises(Malformed, match="note is not a folder"):
        restore_backup(tmp_path / "backup", tmp_path / "used/note")
    (tmp_path / "empty/lost+found").mkdir(parents=True)
    restore_backup(tmp_path / "backup", tmp_path / "empty")
    assert rows_in(tmp_path / "empty") == expected(COMMITS)
    assert not (tmp_path / "empty/.restoring").exists()


def test_a_log_that_lost_its_end_is_corrupt(tmp_path: Path) -> None:
    """The tables have rows that the log never had."""
    fill(tmp_path / "data")
    shutil.rmtree(tmp_path / "data/log/otlp_logs")
    with pytest.raises(Malformed, match="the lake cannot hold it"), filled(tmp_path / "data"):
        pass
    refused(
        Corrupt, "log/otlp_logs/0 is damaged.*frazil.logs", tmp_path / "data", tmp_path / "backup"
    )
