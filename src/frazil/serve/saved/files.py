"""SavedFiles: one file per dashboard, view or query in the data folder.

    <folder>/<name>.json     written atomically: tmp, sync, rename, sync directory

Files may be edited by hand at any time; broken ones are reported. A client that replaces a
file sends the etag it has read, so that no concurrent change is lost.
"""

from __future__ import annotations

import hashlib
import re
import threading
from dataclasses import dataclass
from http import HTTPStatus
from typing import Annotated, Generic, Protocol, TypeVar

import msgspec
from msgspec import Meta

from frazil.disk import Disk, is_full, make_directories, write_whole
from frazil.errors import Conflict, Malformed, TooLarge, Unavailable
from frazil.httpd import HttpError

ENDING = ".json"
NAME_PATTERN = "^[a-z0-9][a-z0-9_-]{0,63}$"
"""Safe on every file system, and cannot leave the folder."""
COUNT_MAX = 500
"""Maximum number of files of one kind."""
FILE_BYTES_MAX = 512 * 1024
"""Size limit; larger files are reported as broken."""

FileName = Annotated[
    str,
    Meta(
        pattern=NAME_PATTERN,
        examples=["shop"],
        description="Lower-case letters, digits, - and _; at most 64.",
    ),
]
Etag = Annotated[str, Meta(pattern="^[0-9a-f]{32}$")]


class Checked(Protocol):
    """A document with rules across its fields."""

    def check(self) -> None:
        """`Malformed` if a rule is violated."""


T = TypeVar("T", bound=Checked)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredFile(Generic[T]):
    """One file as stored."""

    name: str
    etag: str
    content: T | None
    """None if the file is broken."""
    error: str | None = None


class SavedFiles(Generic[T]):
    """The files of one kind. Any thread may call it; writes are serialized."""

    def __init__(self, disk: Disk, folder: str, kind: str, content_type: type[T]) -> None:
        self._disk = disk
        self._folder = folder
        self._kind = kind
        self._type = content_type
        self._write_lock = threading.Lock()

    def all(self) -> list[StoredFile[T]]:
        """Return all files by name, including broken ones. Skips files of other kinds."""
        found = (self._find(name) for name in self._names())
        return [stored for stored in found if stored is not None]

    def get(self, name: str) -> StoredFile[T]:
        """Return one file; 404 if it does not exist."""
        stored = self._find(name)
        if stored is None:
            raise HttpError(HTTPStatus.NOT_FOUND, f"there is no {self._kind} {name}")
        return stored

    def put(self, name: str, content: T, seen: str | None) -> StoredFile[T]:
        """Replace the version with etag `seen`, or create a file. Durable on return.
        `Conflict` if the stored version differs."""
        content.check()
        text = text_of(content)
        if len(text) > FILE_BYTES_MAX:
            raise TooLarge(f"the {self._kind} has {len(text)} bytes; the limit is {FILE_BYTES_MAX}")
        with self._write_lock:
            self._check_seen(name, self._find(name), seen)
            if seen is None and len(self._names()) >= COUNT_MAX:
                raise TooLarge(f"the limit of {COUNT_MAX} files is reached; delete a {self._kind}")
            try:
                make_directories(self._disk, self._folder)
                write_whole(self._disk, self._path(name), [text])
            except OSError as error:
                raise self._failure(name, error) from error
        return StoredFile(name=name, etag=_etag(text), content=content)

    def delete(self, name: str, seen: str | None) -> StoredFile[T]:
        """Delete a file, if its etag is still `seen`, and return it."""
        with self._write_lock:
            stored = self.get(name)
            if seen is not None:
                self._check_seen(name, stored, seen)
            try:
                self._disk.unlink(self._path(name))
                self._disk.sync_directory(self._folder)
            except OSError as error:
                raise self._failure(name, error) from error
        return stored

    def _check_seen(self, name: str, stored: StoredFile[T] | None, seen: str | None) -> None:
        if stored is None and seen is not None:
            raise Conflict(
                f"{self._kind} {name} was deleted in the meantime; store it as a new one"
            )
        if stored is not None and seen is None:
            raise Conflict(f"{self._kind} {name} already exists; choose another name")
        if stored is not None and stored.etag != seen:
            raise Conflict(
                f"{self._kind} {name} was changed in the meantime; reload it, or store yours under "
                "another name"
            )

    def _names(self) -> list[str]:
        files = self._disk.list(self._folder)
        names = [file.removesuffix(ENDING) for file in files if file.endswith(ENDING)]
        return [name for name in names if re.fullmatch(NAME_PATTERN, name)]

    def _find(self, name: str) -> StoredFile[T] | None:
        """Return None if the file does not exist."""
        path = self._path(name)
        text = b""
        try:
            text = self._read(path)
            content = content_of(text, self._type, self._kind)
            return StoredFile(name=name, etag=_etag(text), content=content)
        except FileNotFoundError:
            return None
        except (Malformed, OSError) as error:
            why = f"{path}: {error}"
            return StoredFile(name=name, etag=_etag(text), content=None, error=why)

    def _read(self, path: str) -> bytes:
        file = self._disk.open(path)
        try:
            if file.size() > FILE_BYTES_MAX:
                raise Malformed(
                    f"not a {self._kind}: the file has more than {FILE_BYTES_MAX} bytes"
                )
            return file.read(0, FILE_BYTES_MAX)
        finally:
            file.close()

    def _path(self, name: str) -> str:
        if re.fullmatch(NAME_PATTERN, name) is None:  # msgspec's pattern accepts a trailing newline
            raise Malformed(
                f"name is {name!r}; use lower-case letters, digits, - and _, at most 64"
            )
        return f"{self._folder}/{name}{ENDING}"

    def _failure(self, name: str, error: OSError) -> Unavailable:
        why = "the disk is full" if is_full(error) else str(error)
        return Unavailable(f"{self._kind} {name} could not be stored: {why}")


def text_of(content: Checked) -> bytes:
    """Encode as indented, sorted JSON, for people and git."""
    text = msgspec.json.encode(content, order="sorted")
    return msgspec.json.format(text, indent=2) + b"\n"


def content_of(text: bytes, content_type: type[T], kind: str) -> T:
    """Decode a file. `Malformed` if it is not of that type."""
    try:
        content = msgspec.json.decode(text, type=content_type)
    except msgspec.ValidationError as error:
        raise Malformed(f"not a {kind}: {error}") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Malformed(f"not JSON: {error}") from None
    content.check()
    return content


def _etag(text: bytes) -> str:
    return hashlib.sha256(text).hexdigest()[:32]
