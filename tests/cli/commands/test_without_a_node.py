"""Verbs on a data folder without a node: topics, subscribers, repair."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from frazil import cli
from frazil.disk import RealDisk
from frazil.log import Log, append_of_records
from frazil.log.format.record import Record
from frazil.model import SystemClock
from frazil.settings import TopicConfig

COUNT = 20


def opened(folder: Path) -> Log:
    return Log.open(RealDisk(folder), clock=SystemClock(), rand=random.SystemRandom())


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A log with a topic and a subscriber that has read nothing."""
    with opened(tmp_path) as log:
        log.create_topic("events", TopicConfig(partitions=2))
        log.subscribe("reader", "events", "earliest")
        for number in range(COUNT):
            record = Record(
                offset=0, key=None, value=b"%d" % number * 100, timestamp_ms=number, headers=()
            )
            log.append_durably("events", append_of_records([record]))
    return tmp_path


def damage(folder: Path) -> None:
    """Flip a byte in the middle of the first partition."""
    (path,) = (folder / "log" / "events" / "0").glob("*.log")
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 0xFF
    path.write_bytes(data)


def lines(capsys: pytest.CaptureFixture[str]) -> list[dict[str, object]]:
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_topics_of_a_folder(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The flags stand before or behind the second verb."""
    assert cli.main(["topics", "--data", str(folder), "--json"]) == 0
    topics = {line["topic"]: line for line in lines(capsys)}
    assert (topics["events"]["partitions"], topics["events"]["records"]) == (2, COUNT)
    assert cli.main(["topics", "describe", "events", "--data", str(folder)]) == 0
    assert f"events: {COUNT} records" in capsys.readouterr().out
    assert cli.main(["topics", "--data", str(folder), "describe", "events", "--json"]) == 0
    (described,) = lines(capsys)
    ends = [part["durable_watermark"] for part in described["partitions"]]  # type: ignore[attr-defined]
    assert ends == [COUNT, 0]


def test_another_folder_is_rejected_and_left_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for verb in ("topics", "subscribers", "repair"):
        assert cli.main([verb, "--data", str(tmp_path)]) == 1
        assert "is not a data folder" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_a_subscriber_is_removed(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Only after confirmation; without a terminal with --yes."""
    data = ["--data", str(folder)]
    assert cli.main(["subscribers", *data, "--json"]) == 0
    assert [(each["subscriber"], each["lag_offsets"]) for each in lines(capsys)] == [
        ("reader", COUNT)
    ]
    assert cli.main(["subscribers", *data, "--remove", "reader"]) == 2
    assert "--yes" in capsys.readouterr().err
    assert cli.main(["subscribers", *data, "--remove", "nobody", "--yes"]) == 1
    assert cli.main(["subscribers", *data, "--remove", "hot_logs", "--yes"]) == 2
    assert cli.main(["subscribers", *data, "--remove", "reader", "--yes"]) == 0
    capsys.readouterr()
    assert cli.main(["subscribers", *data]) == 0
    assert "no subscribers" in capsys.readouterr().out


def test_an_intact_log_needs_no_repair(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["repair", "--data", str(folder)]) == 0
    assert f"events/0: intact, {COUNT} batches" in capsys.readouterr().out


def test_damage_is_shown_then_set_aside(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Only the damaged batch is lost, and the log opens again."""
    damage(folder)
    repair = ["repair", "--data", str(folder), "--topic", "events"]
    assert cli.main(["topics", "--data", str(folder)]) == 1
    assert "frazil repair" in capsys.readouterr().err
    assert cli.main([*repair, "--dry-run", "--json"]) == 1
    report = lines(capsys)[0]
    assert report["is_damaged"] is True
    assert report["kept_batches"] == COUNT - 1
    assert cli.main(repair) == 2  # no terminal to ask on
    capsys.readouterr()
    assert cli.main([*repair, "--partition", "0", "--yes", "--json"]) == 0
    (done,) = lines(capsys)
    assert done["is_repaired"] is True
    assert done["lost"] == report["lost"]
    with opened(folder) as log:
        assert log.partition("events", 0).durable_watermark >= COUNT
    assert cli.main([*repair, "--dry-run"]) == 0


def test_repair_rejects_incomplete_flags(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = ["--data", str(folder)]
    assert cli.main(["repair", *data, "--partition", "0"]) == 2
    assert cli.main(["repair", *data, "--topic", "events", "--floor", "3"]) == 2
    assert cli.main(["repair", *data, "--topic", "nothing"]) == 1
    assert "there is no topic nothing" in capsys.readouterr().err
