"""Topics: names are plain file names, and a topic exists completely or not at all."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from frazil.disk import RealDisk
from frazil.errors import Corrupt, Malformed
from frazil.log.topic import CONFIG_NAME, check_name, load_topic, save_topic, topic_names
from frazil.model import Rand
from frazil.settings import TopicConfig
from tests.log.build import FOLDER, TOPIC, add, flipped, open_log, put, values
from tests.sim.disk import Faults, PowerCut, SimDisk

SETTINGS = f"log/{TOPIC}/{CONFIG_NAME}"

BAD_NAMES = [
    "",
    ".",
    "..",
    "../etc",
    "../../../etc/passwd",
    "a/b",
    "/etc/passwd",
    "a\\b",
    "%2e%2e",
    "%2e",
    "a%00b",
    "a\0b",
    "\0",
    "*",
    "a*",
    "a?",
    "[a]",
    "'",
    "a'b",
    '"',
    "a b",
    " a",
    "a ",
    "a\n",
    "\na",
    "a\tb",
    ".hidden",
    "a;b",
    "a|b",
    "$HOME",
    "~root",
    "a:b",
    "a,b",
    "a@b",
    "<script>",
    "\u202etxt",
    "ä",
    "\u0661",
    "\uff0e\uff0e",
    "e\u0301",
    "\ud800",
    "subscribers",
    "x" * 250,
    "x" * 300,
]


@pytest.mark.parametrize("name", BAD_NAMES)
@pytest.mark.parametrize("what", ["topic", "subscriber"])
def test_a_name_that_is_no_plain_file_name_is_refused(name: str, what: str) -> None:
    """Paths, quotes, wildcards, control characters, look-alikes."""
    with pytest.raises(Malformed, match=f"cannot name a {what}"):
        check_name(name, what)


@pytest.mark.parametrize(
    "name", ["a", "A-1", "_x", "-", "a..b", "a.b", "0", "x" * 249, "topic.ckpt"]
)
def test_a_plain_name_is_accepted(name: str) -> None:
    """Kafka's grammar without a leading dot."""
    check_name(name, "topic")


@pytest.mark.parametrize("name", BAD_NAMES)
def test_the_log_refuses_bad_names_and_creates_nothing(name: str) -> None:
    """Every method that takes a name checks it before anything is written."""
    disk = SimDisk()
    log = open_log(disk)
    before = disk.files()
    with pytest.raises(Malformed):
        log.create_topic(name)
    with pytest.raises(Malformed):
        log.subscribe(name, TOPIC, "earliest")
    assert disk.files() == before


def test_the_longest_names_fit_a_real_disk(tmp_path: Path) -> None:
    """With suffix and scratch suffix they are valid file names."""
    log = open_log(RealDisk(tmp_path))
    log.create_topic("x" * 249)
    accepted = 0
    for length in range(235, 251):
        try:
            check_name("y" * length, "subscriber")
        except Malformed:
            continue
        log.subscribe("y" * length, TOPIC, "earliest")
        accepted += 1
    assert accepted
    log.close()
    again = open_log(RealDisk(tmp_path))
    assert len(again.subscribers()) == accepted
    assert [topic.name for topic in again.topics()] == ["dead_letters", TOPIC, "x" * 249]
    again.close()


def test_settings_survive_a_restart() -> None:
    disk = SimDisk()
    config = TopicConfig(partitions=3, retention_ms=5, retention_bytes_max=9)
    open_log(disk, topic=config).close()
    assert load_topic(disk, TOPIC).config == config
    assert open_log(disk).topic(TOPIC).config == config


def test_damaged_settings_stop_the_start() -> None:
    """The number of partitions is not guessed."""
    disk = SimDisk()
    open_log(disk).close()
    whole = disk.data(SETTINGS)
    for bit in range(0, 8 * len(whole), 7):
        put(disk, SETTINGS, flipped(whole, bit))
        with pytest.raises(Corrupt) as caught:
            open_log(disk)
        assert caught.value.path == SETTINGS
        assert disk.holder is None, "a log that did not open holds nothing"


@pytest.mark.parametrize("how_much", [1, 200])
def test_lost_settings_of_a_topic_with_records_stop_the_start(how_much: int) -> None:
    """However little the topic holds."""
    disk = SimDisk()
    log = open_log(disk)
    for number in range(how_much):
        add(log, b"value %d" % number)
    log.close()
    disk.unlink(SETTINGS)
    with pytest.raises(Corrupt, match="the settings of a topic that holds data") as caught:
        open_log(disk)
    assert caught.value.path == SETTINGS


def test_a_topic_is_created_completely_or_not_at_all() -> None:
    """A power cut at every storage call that makes a topic: afterwards it is there with all its
    partitions, or it is not and can be made."""
    outcomes = set()
    for call in range(1, 200):
        disk = SimDisk(model="weak")
        log = open_log(disk)
        disk.faults = Faults(crash_at=disk.calls + call)
        try:
            log.create_topic("new", TopicConfig(partitions=2))
        except PowerCut:
            pass
        else:
            break
        for seed in range(5):
            after = disk.process_kill() if seed == 0 else disk.crash(Rand(seed))
            log = open_log(after)
            outcomes.add("new" in [topic.name for topic in log.topics()])
            assert len(log.create_topic("new", TopicConfig(partitions=2)).partitions) == 2
            add(log, b"in the old topic")
            log = open_log(after.crash(Rand(seed)))
            assert len(log.topic("new").partitions) == 2
            assert values(log) == [b"in the old topic"]
    else:
        raise AssertionError("making a topic takes fewer storage calls than that")
    assert outcomes == {True, False}


def test_foreign_files_in_the_folder_are_no_topics(tmp_path: Path) -> None:
    """Files, empty folders and half-created topics do not stop the start."""
    open_log(RealDisk(tmp_path)).close()
    (tmp_path / "log" / "notes.txt").write_text("remember the milk")
    (tmp_path / "log" / "empty").mkdir()
    (tmp_path / "log" / "half" / "0").mkdir(parents=True)
    (tmp_path / "log" / "half" / "topic.ckpt.tmp").write_bytes(b"half")
    (tmp_path / "log" / "subscribers" / "x.progress.tmp").write_bytes(b"half")
    log = open_log(RealDisk(tmp_path))
    assert [topic.name for topic in log.topics()] == [TOPIC]
    assert log.subscribers() == []
    log.create_topic("half")
    log.close()
    assert topic_names(RealDisk(tmp_path)) == ["half", TOPIC]


def test_a_missing_partition_folder_stops_the_start() -> None:
    disk = SimDisk()
    open_log(disk, topic=TopicConfig(partitions=2)).close()
    stored = load_topic(disk, TOPIC)
    save_topic(disk, TOPIC, msgspec.structs.replace(stored, config=TopicConfig(partitions=3)))
    with pytest.raises(Corrupt, match=f"{FOLDER[:-1]}2 is damaged"):
        open_log(disk)
