"""Bucket: a stage in S3, Google Cloud Storage or Azure Blob Storage, by obstore.

Each request for bytes has the ETag that was listed: bytes that were loaded are bytes that were
listed.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, Any

from frazil.errors import Conflict, Malformed, Unavailable, Unknown
from frazil.load.stages.location import StageLocation, checked_path
from frazil.load.stages.staged_file import StagedFile, changed
from frazil.model import MiB

if TYPE_CHECKING:
    from obstore.store import ObjectStore

BLOCK_BYTES = 8 * MiB
"""Bytes of one request."""
TIMEOUT = "60s"
CONNECT_TIMEOUT = "10s"
RETRIES_MAX = 5
PART_BYTES = 8 * MiB
"""Parts of an upload. S3 allows 10,000."""
CLIENT_OPTIONS = frozenset(
    {"allow_http", "allow_invalid_certificates", "proxy_url", "timeout", "connect_timeout"}
)
"""Entries of a connection that go to the HTTP client."""


class Bucket:
    """Implements `StageStore`."""

    def __init__(self, location: StageLocation, options: Mapping[str, str]) -> None:
        """`options` are the entries of a connection."""
        self._location = location
        self._prefix = f"{location.path}/" if location.path else ""
        self._store = _open(location, options)

    def list(self, prefix: str) -> Iterator[StagedFile]:
        """Yield all files whose path begins with `prefix`."""
        folder, _, _ = prefix.rpartition("/")
        below = f"{self._prefix}{folder}".rstrip("/")
        with self._errors("be listed"):
            for page in self._store.list(below or None):
                for meta in page:
                    path = str(meta["path"]).removeprefix(self._prefix)
                    if path.startswith(prefix) and not path.endswith("/"):
                        yield self._file(path, meta)

    def head(self, path: str) -> StagedFile:
        with self._errors(f"be asked for {path}"):
            return self._file(path, self._store.head(self._key(path)))

    def open(self, file: StagedFile) -> IO[bytes]:
        """Open a file for reading. `Conflict` if it is not the one that was listed."""
        return io.BufferedReader(_Ranges(self, file), BLOCK_BYTES)

    def check(self, file: StagedFile, stream: IO[bytes]) -> None:
        """Every request has checked it."""

    def read(self, file: StagedFile, begin: int, end: int) -> bytes:
        """Return a range of a file."""
        with self._errors(f"be read: {file.uri}", file):
            options: Any = {"if_match": file.etag, "range": (begin, end)}
            return bytes(self._store.get(self._key(file.path), options=options).bytes())

    def put(self, path: str, chunks: Iterable[bytes], *, overwrite: bool) -> StagedFile:
        """Write an object. It appears as a whole."""
        with self._errors(f"be written: {path}"):
            if overwrite:
                self._store.put(
                    self._key(path), iter(chunks), chunk_size=PART_BYTES, use_multipart=True
                )
            else:
                # Conditional requests are for objects sent at once.
                self._store.put(self._key(path), b"".join(chunks), mode="create")
        return self.head(path)

    def delete(self, file: StagedFile) -> None:
        """Delete an object that is still the one that was listed."""
        if self.head(file.path).etag != file.etag:
            raise changed(file)
        with self._errors(f"delete {file.path}"):
            self._store.delete(self._key(file.path))

    def _key(self, path: str) -> str:
        return f"{self._prefix}{checked_path(path)}"

    def _file(self, path: str, meta: Mapping[str, Any]) -> StagedFile:
        time_ms = int(meta["last_modified"].timestamp() * 1000)
        return StagedFile(
            path=path,
            uri=f"{self._location.url}/{path}",
            etag=meta.get("e_tag") or f"{time_ms:x}-{meta['size']:x}",
            size_bytes=meta["size"],
            time_ms=time_ms,
        )

    @contextmanager
    def _errors(self, what: str, file: StagedFile | None = None) -> Iterator[None]:
        """Translate errors of obstore."""
        from obstore import exceptions

        try:
            yield
        except (exceptions.PreconditionError, exceptions.NotFoundError, FileNotFoundError) as error:
            if file is not None:
                raise changed(file) from error
            raise Unknown(f"{self._location.url} cannot {what}: {_reason(error)}") from error
        except exceptions.AlreadyExistsError as error:
            raise Conflict(f"{self._location.url} cannot {what}: it exists") from error
        except (exceptions.BaseError, OSError) as error:
            raise Unavailable(f"{self._location.url} cannot {what}: {_reason(error)}") from error


class _Ranges(io.RawIOBase):
    """A file that is read by ranges."""

    def __init__(self, bucket: Bucket, file: StagedFile) -> None:
        super().__init__()
        self._bucket = bucket
        self._file = file
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._file.size_bytes}[whence]
        self._at = max(0, base + offset)
        return self._at

    def tell(self) -> int:
        return self._at

    def readinto(self, buffer: Any) -> int:
        end = min(self._at + len(buffer), self._file.size_bytes)
        if end <= self._at:
            return 0
        data = self._bucket.read(self._file, self._at, end)
        if len(data) != end - self._at:
            raise changed(self._file)
        buffer[: len(data)] = data
        self._at = end
        return len(data)


def _open(location: StageLocation, options: Mapping[str, str]) -> ObjectStore:
    from obstore.exceptions import BaseError
    from obstore.store import AzureStore, GCSStore, S3Store

    client = {"timeout": TIMEOUT, "connect_timeout": CONNECT_TIMEOUT} | {
        name: value for name, value in options.items() if name in CLIENT_OPTIONS
    }
    client_options: Any = {
        name: value.lower() == "true" if name.startswith("allow_") else value
        for name, value in client.items()
    }
    config: Any = {name: value for name, value in options.items() if name not in CLIENT_OPTIONS}
    retry: Any = {"max_retries": RETRIES_MAX}
    try:
        arguments: Any = {"config": config, "client_options": client_options, "retry_config": retry}
        if location.scheme == "s3":
            return S3Store(location.host, **arguments)
        if location.scheme == "gs":
            return GCSStore(location.host, **arguments)
        return AzureStore(location.host, **arguments)
    except (BaseError, ValueError, TypeError) as error:
        raise Malformed(
            f"the connection of {location.url} cannot be used: {_reason(error)}"
        ) from None


def _reason(error: Exception) -> str:
    """Return the first lines of an error: obstore adds its internals."""
    return " ".join(str(error).partition("\n\nDebug source")[0].split())[:500]
