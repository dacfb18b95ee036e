"""ConnectorProcess: the process of a connector, as the node sees it.

Nothing here waits for the process: messages are sent and received as the socket takes and has them,
and what the process prints is read at a limited rate, so that one that floods its output is slowed
down and not the node.
"""

from __future__ import annotations

import logging
import os
import select
import socket
import struct
import subprocess
import sys
from collections import deque
from collections.abc import Iterator
from contextlib import suppress

import msgspec

from frazil.connectors.messages import FromConnector
from frazil.definitions import masked
from frazil.errors import Malformed, Unavailable
from frazil.model import NS_PER_MS, Clock, MiB

logger = logging.getLogger(__name__)

LENGTH = struct.Struct("<I")
FRAME_BYTES_MAX = 34 * MiB
"""A batch of the log has at most 32 MiB here."""
RECEIVE_BYTES = MiB
LINE_BYTES_MAX = 4096
LINES_MAX = 20
"""Of output, each `LINES_NS`. What comes faster waits in the pipe."""
LINES_NS = 1000 * NS_PER_MS
EXIT_S = 0.5
"""How long a process may take to exit; then it is killed."""


class Wakeup:
    """Wakes the thread that waits for a process. Any thread may call `set`."""

    def __init__(self) -> None:
        self._ours, self._theirs = socket.socketpair()
        self._ours.setblocking(False)
        self._theirs.setblocking(False)

    def fileno(self) -> int:
        return self._ours.fileno()

    def set(self) -> None:
        with suppress(OSError):  # full: it is awake already; closed: nobody waits
            self._theirs.send(b"w")

    def clear(self) -> None:
        with suppress(BlockingIOError):
            while self._ours.recv(4096):
                pass

    def close(self) -> None:
        self._ours.close()
        self._theirs.close()


class ConnectorProcess:
    """Owned by one thread."""

    def __init__(self, name: str, wakeup: Wakeup, clock: Clock, *, memory_bytes_max: int) -> None:
        """Start the process. `Unavailable` if that fails."""
        self._name = name
        self._wakeup = wakeup
        self._clock = clock
        self._decoder = msgspec.msgpack.Decoder(FromConnector)
        self._received = bytearray()
        self._frames: deque[FromConnector] = deque()
        self._sending = bytearray()
        self._output = b""
        self._lines_left = LINES_MAX
        self._lines_ns = clock.monotonic_ns()
        self._is_printing = True
        self._how = ""
        self.has_ended = False
        """The process has closed its end, or has exited."""
        ours, theirs = socket.socketpair()
        try:
            self._process = subprocess.Popen(
                [
                    *(sys.executable, "-m", "frazil.connectors.process"),
                    *(str(theirs.fileno()), str(memory_bytes_max)),
                ],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                pass_fds=(theirs.fileno(),),
                start_new_session=True,  # Ctrl-C goes only to the node
                env={**os.environ, "PYTHONUNBUFFERED": "1"},
            )
        except OSError as error:
            ours.close()
            raise Unavailable(f"the process cannot be started: {error}") from None
        finally:
            theirs.close()
        ours.setblocking(False)
        self._peer = ours
        assert self._process.stdout is not None
        self._pipe = self._process.stdout
        os.set_blocking(self._pipe.fileno(), False)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def is_sent(self) -> bool:
        """Whether the process has everything that was sent."""
        return not self._sending

    @property
    def has_messages(self) -> bool:
        """Whether messages have arrived that were not taken yet."""
        return bool(self._frames)

    def send(self, message: msgspec.Struct) -> None:
        """Queue a message; `wait` sends it."""
        body = msgspec.msgpack.encode(message)
        self._sending += LENGTH.pack(len(body))
        self._sending += body
        self._flush()

    def wait(self, timeout_s: float, *, reads: bool) -> None:
        """Wait until something happens: the process has sent something (only if `reads`), has
        ended, or somebody has set the wakeup."""
        poll = select.poll()
        wanted = (select.POLLIN if reads and not self._frames else 0) | (
            select.POLLOUT if self._sending else 0
        )
        if wanted and not self.has_ended:
            poll.register(self._peer, wanted)
        poll.register(self._wakeup.fileno(), select.POLLIN)
        if self._may_print():
            poll.register(self._pipe, select.POLLIN)
        timeout_ms = 0 if self._frames and reads else int(timeout_s * 1000)
        for descriptor, events in poll.poll(timeout_ms):
            if descriptor == self._wakeup.fileno():
                self._wakeup.clear()
            elif descriptor == self._pipe.fileno():
                self._read_output()
            else:
                if events & select.POLLOUT:
                    self._flush()
                if events & select.POLLIN:
                    self._receive()
                elif events & (select.POLLHUP | select.POLLERR):
                    self.has_ended = True

    def messages(self) -> Iterator[FromConnector]:
        """Return the messages that have arrived, one at a time. `Malformed` if the process sends
        something else."""
        while self._frames:
            yield self._frames.popleft()

    def _receive(self) -> None:
        try:
            data = self._peer.recv(RECEIVE_BYTES)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self.has_ended = True
            return
        self._received += data
        at = 0
        while len(self._received) - at >= LENGTH.size:
            (length,) = LENGTH.unpack_from(self._received, at)
            if length > FRAME_BYTES_MAX:
                raise Malformed(f"the process has sent a message of {length} bytes")
            end = at + LENGTH.size + length
            if len(self._received) < end:
                break
            try:
                self._frames.append(self._decoder.decode(self._received[at + LENGTH.size : end]))
            except msgspec.MsgspecError as error:
                raise Malformed(f"the process has sent no message of ours: {error}") from None
            at = end
        del self._received[:at]

    def _flush(self) -> None:
        try:
            while self._sending:
                sent = self._peer.send(bytes(self._sending[:RECEIVE_BYTES]))
                del self._sending[:sent]
        except BlockingIOError:
            return
        except OSError:
            self._sending.clear()
            self.has_ended = True

    def _may_print(self) -> bool:
        now_ns = self._clock.monotonic_ns()
        if now_ns - self._lines_ns > LINES_NS:
            self._lines_ns, self._lines_left = now_ns, LINES_MAX
        return self._is_printing and self._lines_left > 0

    def _read_output(self) -> None:
        """Log what the process prints."""
        try:
            data = os.read(self._pipe.fileno(), LINE_BYTES_MAX)
        except BlockingIOError:
            return
        if not data:
            self._is_printing = False
        *lines, rest = (self._output + data).split(b"\n")
        if len(rest) >= LINE_BYTES_MAX or not data:
            lines, rest = [*lines, rest], b""
        self._output = rest
        for line in lines:
            if line.strip():
                self._lines_left -= 1
                text = masked(line.decode(errors="replace").rstrip()[:LINE_BYTES_MAX])
                logger.info("connector says", extra={"connector": self._name, "text": text})

    def kill(self) -> None:
        """Kill the process; `close` comes next."""
        self._process.kill()

    def close(self) -> str:
        """Kill the process if it runs, and return how it ended. Idempotent."""
        if self._how:
            return self._how
        self._peer.close()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(EXIT_S)  # it ends once its socket is closed, unless it is stuck
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()
        while self._may_print() and select.select([self._pipe], [], [], 0)[0]:
            self._read_output()
        self._pipe.close()
        code = self._process.returncode
        self._how = f"signal {-code}" if code < 0 else f"exit code {code}"
        return self._how
