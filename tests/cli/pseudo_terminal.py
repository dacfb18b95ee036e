"""Terminal: a command in a pseudo terminal, typed into and read from like a person does."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import termios
from types import TracebackType

SECONDS_MAX = 30
TRIES_MAX = 10
PAUSE_S = 3
"""After this long without output, none is expected."""
_ESCAPES = re.compile(rb"\x1b\[[0-9;?]*[a-zA-Z]")


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

    def read_until(self, *expected: str) -> str:
        """Return the output up to these texts, which must appear in order, without escape codes."""
        seen = b""
        while not _has_all(_plain(seen), expected):
            readable, _, _ = select.select([self._ours], [], [], SECONDS_MAX)
            assert readable, f"{expected} was not printed, but {_plain(seen)}"
            try:
                seen += os.read(self._ours, 65536)
            except OSError as error:
                raise AssertionError(f"the command exited after {_plain(seen)}") from error
        return _plain(seen)

    def interrupt(self, expected: str) -> None:
        """Press Ctrl-C until `expected` appears; one during a completion is lost."""
        seen = b""
        for _ in range(TRIES_MAX):
            self.write("\x03")
            while select.select([self._ours], [], [], PAUSE_S)[0]:
                seen += os.read(self._ours, 65536)
                if expected in _plain(seen):
                    return
        raise AssertionError(f"{expected} was not printed, but {_plain(seen)}")

    def is_reading(self) -> bool:
        """Return whether readline waits for keys; it leaves canonical mode only for that."""
        return not termios.tcgetattr(self._ours)[3] & termios.ICANON

    def wait(self) -> int:
        """Wait for the exit code."""
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
    return _ESCAPES.sub(b"", seen).decode(errors="replace").replace("\r\n", "\n")


def _has_all(text: str, expected: tuple[str, ...]) -> bool:
    """Return whether all texts appear in order."""
    position = 0
    for part in expected:
        position = text.find(part, position)
        if position < 0:
            return False
        position += len(part)
    return True
