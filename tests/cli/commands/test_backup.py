"""`frazil backup` and `frazil restore`: their text, their JSON, their exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from frazil import cli
from tests.cli.commands.test_without_a_node import COUNT, opened
from tests.cli.commands.test_without_a_node import folder as folder  # a fixture


@pytest.fixture
def backup(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A backup of a log without tables."""
    target = tmp_path_factory.mktemp("backups") / "monday"
    assert cli.main(["backup", str(target), "--data", str(folder)]) == 0
    return target


def test_the_text_says_what_is_in_it(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    backup = tmp_path.parent / f"{tmp_path.name}-backup"
    assert cli.main(["backup", str(backup), "--data", str(folder)]) == 0
    head, *partitions, tables = capsys.readouterr().out.splitlines()
    assert head.startswith(f"{backup}: ") and "copied, 0 B linked" in head
    assert f"  events/0: offsets 0 to {COUNT} (exclusive)" in partitions
    assert tables == "  tables: none"


def test_a_restored_log_has_every_record(
    backup: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "restored"
    assert cli.main(["restore", str(backup), "--dry-run"]) == 0
    assert f"{backup}: intact" in capsys.readouterr().out
    assert cli.main(["restore", str(backup), "--data", str(target)]) == 0
    assert f"{target}: restored" in capsys.readouterr().out
    with opened(target) as log:
        assert log.partition("events", 0).durable_watermark == COUNT
        assert [subscriber.name for subscriber in log.subscribers()] == ["reader"]


def test_json_is_one_object(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = str(tmp_path.parent / f"{tmp_path.name}-backup")
    assert cli.main(["backup", target, "--data", str(folder), "--json"]) == 0
    made = json.loads(capsys.readouterr().out)
    assert made["path"] == target and made["tables"] == []
    ends = {(each["topic"], each["partition"]): each["end_offset"] for each in made["partitions"]}
    assert ends["events", 0] == COUNT
    assert cli.main(["restore", target, "--data", f"{target}-restored", "--json"]) == 0
    restored = json.loads(capsys.readouterr().out)
    assert restored["files"] == made["files"] and restored["data"] == f"{target}-restored"


def test_wrong_use_exits_with_2(
    backup: Path, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for arguments, message in (
        (["backup", str(backup), "--data", str(folder)], "exists; name a folder that does not"),
        (["restore", str(backup)], "name the new data folder with --data"),
        (["restore", str(backup), "--data", str(folder)], "is not empty"),
    ):
        assert cli.main(arguments) == 2
        assert message in capsys.readouterr().err


def test_a_damaged_backup_exits_with_1(backup: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (backup / "data/log/events/topic.ckpt").unlink()
    assert cli.main(["restore", str(backup), "--dry-run"]) == 1
    assert "log/events/topic.ckpt is damaged" in capsys.readouterr().err
