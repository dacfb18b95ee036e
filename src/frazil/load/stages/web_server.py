"""WebServer: a stage on a web server, which is read only.

A redirect is not followed: it would lead out of the root. A server may know neither ETags nor
ranges, so that a file is copied to a temporary file by one request, and compared with what was
listed.
"""

from __future__ import annotations

import http.client
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from email.utils import parsedate_to_datetime
from typing import IO
from urllib.parse import quote

from frazil.errors import Malformed, Unavailable, Unknown
from frazil.load.stages.local_folder import temporary_file
from frazil.load.stages.location import StageLocation, checked_path
from frazil.load.stages.staged_file import StagedFile, changed
from frazil.model import MiB

BLOCK_BYTES = 8 * MiB
TIMEOUT_S = 60.0


class WebServer:
    """Implements `StageStore`."""

    def __init__(self, location: StageLocation) -> None:
        self._location = location

    def list(self, prefix: str) -> Iterator[StagedFile]:
        raise Malformed(
            f"{self._location.url} is a web server, which cannot list files; name them: "
            "FILES=('a.json', 'b.json')"
        )

    def head(self, path: str) -> StagedFile:
        with self._requested("HEAD", path) as response:
            return self._file(path, response)

    def open(self, file: StagedFile) -> IO[bytes]:
        """Copy a file, and open the copy. `Conflict` if it is not the one that was listed."""
        with ExitStack() as undo:
            copy = undo.enter_context(temporary_file())
            with self._requested("GET", file.path) as response:
                if self._file(file.path, response) != file:
                    raise changed(file)
                while chunk := response.read(BLOCK_BYTES):
                    copy.write(chunk)
            if copy.tell() != file.size_bytes:
                raise changed(file)
            copy.seek(0)
            undo.pop_all()
        return copy

    def check(self, file: StagedFile, stream: IO[bytes]) -> None:
        """The copy does not change."""

    def put(self, path: str, chunks: Iterable[bytes], *, overwrite: bool) -> StagedFile:
        raise Malformed(f"{self._location.url} is a web server; stages there are read-only")

    def delete(self, file: StagedFile) -> None:
        raise Malformed(f"{self._location.url} is a web server; its files are not deleted")

    def _url(self, path: str) -> str:
        return f"{self._location.url}/{path}"

    @contextmanager
    def _requested(self, method: str, path: str) -> Iterator[http.client.HTTPResponse]:
        """Send a request, and yield the response if it is about the file."""
        kinds = {"http": http.client.HTTPConnection, "https": http.client.HTTPSConnection}
        connection = kinds[self._location.scheme](self._location.host, timeout=TIMEOUT_S)
        below = f"{self._location.path}/{checked_path(path)}".lstrip("/")
        try:
            connection.request(method, f"/{quote(below)}", headers={"Accept-Encoding": "identity"})
            response = connection.getresponse()
            self._check_status(response, path)
            yield response
        except (OSError, http.client.HTTPException) as error:
            raise Unavailable(f"{self._url(path)} cannot be read: {error}") from error
        finally:
            connection.close()

    def _check_status(self, response: http.client.HTTPResponse, path: str) -> None:
        status = response.status
        if status == http.HTTPStatus.OK:
            return
        if status in (http.HTTPStatus.NOT_FOUND, http.HTTPStatus.GONE):
            raise Unknown(f"{self._url(path)} does not exist")
        if http.HTTPStatus.MULTIPLE_CHOICES <= status < http.HTTPStatus.BAD_REQUEST:
            raise Malformed(
                f"{self._url(path)} redirects to {response.headers.get('Location', 'elsewhere')}; "
                "a stage follows no redirects, use the URL that it leads to"
            )
        raise Unavailable(f"{self._url(path)} answers {status} {response.reason}")

    def _file(self, path: str, response: http.client.HTTPResponse) -> StagedFile:
        length, modified = response.headers.get("Content-Length"), response.headers["Last-Modified"]
        if length is None or not length.isdecimal():
            raise Malformed(
                f"{self._url(path)} does not say how long it is: the server has to send "
                "Content-Length"
            )
        time_ms = 0
        if modified is not None:
            try:
                time_ms = int(parsedate_to_datetime(modified).timestamp() * 1000)
            except ValueError:
                raise Malformed(
                    f"{self._url(path)}: Last-Modified {modified!r} is not a date"
                ) from None
        size = int(length)
        return StagedFile(
            path=path,
            uri=self._url(path),
            etag=response.headers.get("ETag") or f"{time_ms:x}-{size:x}",
            size_bytes=size,
            time_ms=time_ms,
        )
