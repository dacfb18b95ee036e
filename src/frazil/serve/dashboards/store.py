"""DashboardFiles: one file per dashboard in the data folder.

    dashboards/<name>.json     written atomically: tmp, sync, rename, sync directory

Files may be edited by hand at any time; broken ones are reported. A client that replaces a
dashboard sends the etag it has read, so that no concurrent change is lost.
"""

from __future__ import annotations

import hashlib
import re
import threading
from http import HTTPStatus
from typing import Annotated

import msgspec

from frazil.disk import Disk, is_full, make_directories, write_whole
from frazil.errors import Conflict, Malformed, TooLarge, Unavailable
from frazil.httpd import HttpError
from frazil.model import doc
from frazil.serve.dashboards.model import Dashboard, dashboard_of, text_of

FOLDER = "dashboards"
ENDING = ".json"
NAME_PATTERN = "^[a-z0-9][a-z0-9_-]{0,63}$"
"""Safe on every file system, and cannot leave the folder."""
COUNT_MAX = 500
"""Maximum number of dashboards."""
FILE_BYTES_MAX = 512 * 1024
"""Size limit of a dashboard; larger files are reported as broken."""


class StoredDashboard(msgspec.Struct, frozen=True, kw_only=True):
    """One dashboard as stored."""

    name: str
    etag: Annotated[str, doc("Version of the text; send it to replace or delete.")]
    dashboard: Annotated[Dashboard | None, doc("Null if the file is broken.")]
    error: Annotated[str | None, doc("Why the file cannot be read.")] = None


class DashboardFiles:
    """The dashboards of one data folder. Any thread may call it; writes are serialized."""

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self._write_lock = threading.Lock()

    def all(self) -> list[StoredDashboard]:
        """Return all dashboards by name, including broken ones. Skips other files."""
        dashboards = (self._find(name) for name in self._names())
        return [stored for stored in dashboards if stored is not None]

    def get(self, name: str) -> StoredDashboard:
        """Return one dashboard; 404 if it does not exist."""
        stored = self._find(name)
        if stored is None:
            raise HttpError(HTTPStatus.NOT_FOUND, f"there is no dashboard {name}")
        return stored

    def put(self, name: str, dashboard: Dashboard, seen: str | None) -> StoredDashboard:
        """Replace the version with etag `seen`, or create a dashboard. Durable on return.
        `Conflict` if the stored version differs."""
        dashboard.check()
        text = text_of(dashboard)
        if len(text) > FILE_BYTES_MAX:
            raise TooLarge(f"the dashboard has {len(text)} bytes; the limit is {FILE_BYTES_MAX}")
        with self._write_lock:
            self._check_seen(name, self._find(name), seen)
            if seen is None and len(self._names()) >= COUNT_MAX:
                raise TooLarge(f"there are {COUNT_MAX} dashboards, the limit; delete one")
            try:
                make_directories(self._disk, FOLDER)
                write_whole(self._disk, _path(name), [text])
            except OSError as error:
                raise _failure(name, error) from error
        return StoredDashboard(name=name, etag=_etag(text), dashboard=dashboard)

    def delete(self, name: str, seen: str | None) -> StoredDashboard:
        """Delete a dashboard, if its etag is still `seen`, and return it."""
        with self._write_lock:
            stored = self.get(name)
            if seen is not None:
                self._check_seen(name, stored, seen)
            try:
                self._disk.unlink(_path(name))
                self._disk.sync_directory(FOLDER)
            except OSError as error:
                raise _failure(name, error) from error
        return stored

    def _check_seen(self, name: str, stored: StoredDashboard | None, seen: str | None) -> None:
        if stored is None and seen is not None:
            raise Conflict(f"dashboard {name} was deleted in the meantime; store it as a new one")
        if stored is not None and seen is None:
            raise Conflict(f"dashboard {name} already exists; choose another name")
        if stored is not None and stored.etag != seen:
            raise Conflict(
                f"dashboard {name} was changed in the meantime; reload it, or store yours under "
                "another name"
            )

    def _names(self) -> list[str]:
        files = self._disk.list(FOLDER)
        names = [file.removesuffix(ENDING) for file in files if file.endswith(ENDING)]
        return [name for name in names if re.fullmatch(NAME_PATTERN, name)]

    def _find(self, name: str) -> StoredDashboard | None:
        """Return None if the file does not exist."""
        path = _path(name)
        text = b""
        try:
            text = self._read(path)
            return StoredDashboard(name=name, etag=_etag(text), dashboard=dashboard_of(text))
        except FileNotFoundError:
            return None
        except (Malformed, OSError) as error:
            why = f"{path}: {error}"
            return StoredDashboard(name=name, etag=_etag(text), dashboard=None, error=why)

    def _read(self, path: str) -> bytes:
        file = self._disk.open(path)
        try:
            if file.size() > FILE_BYTES_MAX:
                raise Malformed(f"not a dashboard: the file has more than {FILE_BYTES_MAX} bytes")
            return file.read(0, FILE_BYTES_MAX)
        finally:
            file.close()


def _path(name: str) -> str:
    if re.fullmatch(NAME_PATTERN, name) is None:  # msgspec's pattern accepts a trailing newline
        raise Malformed(f"name is {name!r}; use lower-case letters, digits, - and _, at most 64")
    return f"{FOLDER}/{name}{ENDING}"


def _etag(text: bytes) -> str:
    return hashlib.sha256(text).hexdigest()[:32]


def _failure(name: str, error: OSError) -> Unavailable:
    why = "the disk is full" if is_full(error) else str(error)
    return Unavailable(f"dashboard {name} could not be stored: {why}")
