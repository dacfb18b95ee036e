"""AccessFile: a small state below `kafka/`, replaced whole. See docs/formats/kafka-access.md."""

from __future__ import annotations

from typing import Generic, TypeVar

import msgspec

from frazil.disk import Disk, is_full, make_directories, read_checkpoint, write_checkpoint
from frazil.errors import Corrupt, Overloaded, Unavailable
from frazil.kafka.broker import FOLDER

VERSION = 1
HINT = "Restore the file from a copy, or remove it: what it says of users, ACLs or quotas is lost."

T = TypeVar("T")


class AccessFile(Generic[T]):
    """One file. Its methods wait for the disk; one thread at a time may write."""

    def __init__(self, disk: Disk, name: str, kind: bytes, state: type[T]) -> None:
        self.disk = disk
        self.path = f"{FOLDER}/{name}"
        self._kind = kind
        self._decoder = msgspec.msgpack.Decoder(state)
        self._encoder = msgspec.msgpack.Encoder()
        self._last: tuple[bytes, T] | None = None
        """What was read last: the same bytes are the same state."""

    def read(self) -> T | None:
        """Return the state; None if there is no file. Raises `Corrupt` if it is damaged,
        `Unavailable` if it cannot be read."""
        try:
            body = read_checkpoint(self.disk, self.path, self._kind, VERSION, HINT)
        except OSError as error:
            raise Unavailable(f"{self.path} cannot be read: {error.strerror}") from error
        if body is None:
            return None
        last = self._last
        if last is not None and last[0] == body:
            return last[1]
        try:
            state = self._decoder.decode(body)
        except msgspec.MsgspecError as error:
            raise Corrupt(
                path=self.path, position=0, expected="MessagePack", found=str(error), hint=HINT
            ) from None
        self._last = body, state
        return state

    def write(self, state: T) -> None:
        """Replace the state. Returns once it survives a power cut. Raises `Overloaded` if the disk
        is full, `Unavailable` if it fails."""
        try:
            make_directories(self.disk, FOLDER)
            body = self._encoder.encode(state)
            write_checkpoint(self.disk, self.path, self._kind, VERSION, body, is_private=True)
        except OSError as error:
            if is_full(error):
                raise Overloaded(f"{self.path} was not changed: the disk is full") from None
            raise Unavailable(f"{self.path} cannot be written: {error.strerror}") from error
