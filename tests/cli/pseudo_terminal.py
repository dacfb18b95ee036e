"""A command in a terminal: typed at, and read from, as a person does."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import termios
from pathlib import Path
from types import TracebackType

SECONDS_MAX = 30
TRIES_MAX = 10
PAUSE_S = 3
"""Without a letter for so long, nothing comes by itself."""
_COLOURS = re.compile(rb"\x1b\[[0-9;?]*[a-zA-Z]")


class Terminal:
    """Owned by one test."""

    def __init__(self, command: list[str], *, columns: int, env: dict[str, str]) -> None:
        self._ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
        self._process = subprocess.Popen(
            command,
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            env={**os.environ, "TERM": "xterm", **env},
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0) and None,
        )
        os.close(theirs)

    def write(self, text: str) -> None:
        os.write(self._ours, text.encode())

    def read_until(self, *wanted: str) -> str:
        """What is written up to these texts, one after the other, without colours."""
        seen = b""
        while not _has_all(_plain(seen), wanted):
            readable, _, _ = select.select([self._ours], [], [], SECONDS_MAX)
            assert readable, f"{wanted} was never written, but {_plain(seen)}"
            try:
                seen += os.read(self._ours, 65536)
            except OSError as error:
                raise AssertionError(f"it ended with {_plain(seen)}") from error
        return _plain(seen)

    def interrupt(self, wanted: str) -> None:
        """Ctrl-C, as often as it takes, as a person does: one that comes in the middle of a
        completion is lost."""
        seen = b""
        for _ in range(TRIES_MAX):
            self.write("\x03")
            while select.select([self._ours], [], [], PAUSE_S)[0]:
                seen += os.read(self._ours, 65536)
                if wanted in _plain(seen):
                    return
        raise AssertionError(f"{wanted} was never written, but {_plain(seen)}")

    def has_child(self) -> bool:
        """Has it started a process that still runs?"""
        pid = self._process.pid
        return bool(Path(f"/proc/{pid}/task/{pid}/children").read_text().split())

    def wait(self) -> int:
        """The exit code, once it has ended."""
        return self._process.wait(SECONDS_MAX)

    def __enter__(self) -> Terminal:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._ours)


def _plain(seen: bytes) -> str:
    return _COLOURS.sub(b"", seen).decode(errors="replace").replace("\r\n", "\n")


def _has_all(text: str, wanted: tuple[str, ...]) -> bool:
    """Are all there, one behind the other?"""
    at = 0
    for each in wanted:
        at = text.find(each, at)
        if at < 0:
            return False
        at += len(each)
    return True
