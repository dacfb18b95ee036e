"""DashboardFiles: dashboards as files of the data folder, one each, for people and for git.

    dashboards/<name>.json     written whole: tmp, sync, rename, sync directory

Somebody may change them by hand at any time; a file that is no dashboard is told as such. Whoever
writes says which text he has seen, so that nobody's work is lost without his knowing.
"""

from __future__ import annotations

import hashlib
import re
import threading
from http import HTTPStatus

import msgspec

from frazil.disk import Disk, is_full, make_directories, write_whole
from frazil.errors import Conflict, Malformed, TooLarge, Unavailable
from frazil.httpd import HttpError
from frazil.serve.dashboards.model import Dashboard, dashboard_of, text_of

FOLDER = "dashboards"
ENDING = ".json"
NAME_PATTERN = "^[a-z0-9][a-z0-9_-]{0,63}$"
"""The same file on every file system, and no way out of the folder."""
COUNT_MAX = 500
"""Dashboards of one node."""
FILE_BYTES_MAX = 512 * 1024
"""Of one dashboard. A file that is larger is none of ours."""


class StoredDashboard(msgspec.Struct, frozen=True, kw_only=True):
    """One dashboard, as it is stored."""

    name: str
    etag: str
    """Names this very text: whoever writes says which he has seen."""
    dashboard: Dashboard | None
    """None when the file is broken."""
    error: str | None = None
    """What is wrong with the file."""


class DashboardFiles:
    """The files of one data folder. Asked by any thread; one at a time writes."""

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self._writing = threading.Lock()

    def all(self) -> list[StoredDashboard]:
        """By name, the broken ones too. Files with other names are not ours."""
        found = (self._find(name) for name in self._names())
        return [each for each in found if each is not None]

    def get(self, name: str) -> StoredDashboard:
        """One of them; 404 when there is none."""
        found = self._find(name)
        if found is None:
            raise HttpError(HTTPStatus.NOT_FOUND, f"there is no dashboard {name}")
        return found

    def put(self, name: str, dashboard: Dashboard, seen: str | None) -> StoredDashboard:
        """Store it in place of the text that was `seen`, or as a new one. Durable when it returns;
        `Conflict` when something else is there by now."""
        dashboard.check()
        text = text_of(dashboard)
        if len(text) > FILE_BYTES_MAX:
            raise TooLarge(f"the dashboard has {len(text)} bytes; {FILE_BYTES_MAX} are allowed")
        with self._writing:
            self._check_seen(name, self._find(name), seen)
            if seen is None and len(self._names()) >= COUNT_MAX:
                raise TooLarge(f"there are {COUNT_MAX} dashboards, which is the limit; delete one")
            try:
                make_directories(self._disk, FOLDER)
                write_whole(self._disk, _path(name), [text])
            except OSError as error:
                raise _failure(name, error) from error
        return StoredDashboard(name=name, etag=_etag(text), dashboard=dashboard)

    def delete(self, name: str, seen: str | None) -> StoredDashboard:
        """Take it away, if it is still what was `seen`. Gives what was there."""
        with self._writing:
            there = self.get(name)
            if seen is not None:
                self._check_seen(name, there, seen)
            try:
                self._disk.unlink(_path(name))
                self._disk.sync_directory(FOLDER)
            except OSError as error:
                raise _failure(name, error) from error
        return there

    def _check_seen(self, name: str, there: StoredDashboard | None, seen: str | None) -> None:
        if there is None and seen is not None:
            raise Conflict(f"the dashboard {name} was deleted meanwhile; store it as a new one")
        if there is not None and seen is None:
            raise Conflict(f"there is a dashboard {name} already; choose another name")
        if there is not None and there.etag != seen:
            raise Conflict(
                f"the dashboard {name} was changed meanwhile, by somebody else or by hand; load it "
                "again, or store yours under another name"
            )

    def _names(self) -> list[str]:
        files = self._disk.list(FOLDER)
        names = [file.removesuffix(ENDING) for file in files if file.endswith(ENDING)]
        return [name for name in names if re.fullmatch(NAME_PATTERN, name)]

    def _find(self, name: str) -> StoredDashboard | None:
        """None when there is no such file."""
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
                raise Malformed(f"it has more than {FILE_BYTES_MAX} bytes, so it is no dashboard")
            return file.read(0, FILE_BYTES_MAX)
        finally:
            file.close()


def _path(name: str) -> str:
    if re.fullmatch(NAME_PATTERN, name) is None:  # A pattern that is searched lets a line end pass.
        raise Malformed(f"name is {name!r}; use lower-case letters, digits, - and _, at most 64")
    return f"{FOLDER}/{name}{ENDING}"


def _etag(text: bytes) -> str:
    return hashlib.sha256(text).hexdigest()[:32]


def _failure(name: str, error: OSError) -> Unavailable:
    why = "the disk is full" if is_full(error) else str(error)
    return Unavailable(f"the dashboard {name} could not be stored: {why}")
