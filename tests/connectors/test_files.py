"""The type `files`: lines once and in order, whatever is done to the files."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from frazil.connectors import ConnectorContext, KnownPosition, Source, connector_type, options_of
from frazil.errors import FrazilError
from frazil.model import SystemClock
from frazil.settings import ConnectorsConfig

KIND = connector_type("files")


@dataclass
class Clock(SystemClock):
    """Its seconds pass by themselves."""

    now_ns: int = 0

    def monotonic_ns(self) -> int:
        return self.now_ns

    def sleep(self, seconds: float) -> None:
        self.now_ns += int(seconds * 1e9)


class Followed:
    """A source over a folder, with the positions that a log would have."""

    def __init__(self, folder: Path, pattern: str = "*.log", line_bytes_max: int = 1000) -> None:
        self._folder = folder
        self._options = {"folder": str(folder), "pattern": pattern}
        self._line_bytes_max = line_bytes_max
        self.known: dict[str, bytes] = {}
        self.lines: list[bytes] = []
        self.restart()

    def restart(self) -> None:
        """As after a kill: with what is durable."""
        context = ConnectorContext(
            name="f", topic="t", roots=[str(self._folder.parent)], clock=Clock()
        )
        options = options_of(
            KIND.options, {**self._options, "line_bytes_max": self._line_bytes_max}
        )
        assert KIND.source is not None
        self._source: Source = KIND.source(options, context)
        known = [
            KnownPosition(topic="t", partition=0, stream=stream, position=position)
            for stream, position in self.known.items()
        ]
        self._source.open(known)

    def poll(self, times: int = 2) -> Sequence[bytes]:
        """Return the new lines."""
        before = len(self.lines)
        for _ in range(times):
            for batch in self._source.poll(0.5):
                assert batch.position != self.known.get(batch.stream) or not batch.records
                self.lines += [record.value or b"" for record in batch.records]
                self.known[batch.stream] = batch.position
                if batch.is_last:
                    del self.known[batch.stream]
        return self.lines[before:]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "in").mkdir()
    return tmp_path / "in"


def test_a_line_counts_once_it_is_whole(folder: Path) -> None:
    log = folder / "a.log"
    log.write_bytes(b"one\r\ntwo\nthr")
    followed = Followed(folder)
    assert followed.poll() == [b"one", b"two"]
    followed.restart()
    assert followed.poll() == []
    with log.open("ab") as file:
        file.write(b"ee\n\nlast\n")
    assert followed.poll() == [b"three", b"", b"last"]


def test_a_rotation_by_renaming_goes_on(folder: Path) -> None:
    """What was written to the old file before and after it was renamed comes once."""
    log = folder / "a.log"
    with log.open("ab", buffering=0) as file:
        file.write(b"1\n2\n")
        followed = Followed(folder)
        assert followed.poll() == [b"1", b"2"]
        file.write(b"3\n")
        log.rename(folder / "a.log.1")
        log.write_bytes(b"4\n")
        file.write(b"5\n")
    followed.restart()
    assert sorted(followed.poll()) == [b"3", b"4", b"5"]
    followed.restart()
    assert followed.poll() == []


@pytest.mark.parametrize("is_restarted", [False, True])
@pytest.mark.parametrize("after", [b"x\n", b"new\n", b"much longer than before\nand more\n"])
def test_a_rotation_by_truncating_begins_anew(
    after: bytes, is_restarted: bool, folder: Path
) -> None:
    """Also if the file is already as long as before, or longer."""
    log = folder / "a.log"
    log.write_bytes(b"old\n")
    followed = Followed(folder)
    assert followed.poll() == [b"old"]
    if is_restarted:
        followed.restart()
    os.truncate(log, 0)
    with log.open("ab") as file:
        file.write(after)
    assert followed.poll() == after.splitlines()
    assert followed.poll() == []


def test_a_deleted_file_is_read_to_its_end_and_forgotten(folder: Path) -> None:
    log = folder / "a.log"
    log.write_bytes(b"1\n")
    followed = Followed(folder)
    followed.poll()
    with log.open("ab", buffering=0) as file:
        file.write(b"2\nrest")
        log.unlink()
        assert followed.poll(30) == [b"2", b"rest"]
    assert followed.known == {}


def test_a_long_line_comes_in_pieces(folder: Path) -> None:
    (folder / "a.log").write_bytes(b"x" * 25 + b"\nshort\n")
    assert Followed(folder, line_bytes_max=10).poll() == [b"x" * 10, b"x" * 10, b"x" * 5, b"short"]


def test_links_and_other_places_are_refused(folder: Path, tmp_path: Path) -> None:
    """Neither a link in the folder nor one to a folder leads out of the roots."""
    secret = tmp_path / "secret"
    secret.write_bytes(b"password\n")
    (folder / "a.log").symlink_to(secret)
    os.mkfifo(folder / "b.log")
    assert Followed(folder).poll() == []
    (folder / "out").symlink_to("/etc")
    context = ConnectorContext(name="f", topic="t", roots=[str(folder)], clock=Clock())
    assert KIND.source is not None
    for path in ("/etc", f"{folder}/out", f"{folder}/..", f"{folder}2", "relative"):
        with pytest.raises(FrazilError):
            KIND.source(options_of(KIND.options, {"folder": path}), context)


def test_settings_are_checked() -> None:
    with pytest.raises(FrazilError):
        ConnectorsConfig(backoff_ms=10, backoff_ms_max=5)
