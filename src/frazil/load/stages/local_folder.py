"""LocalFolder: a stage in a local folder.

Below the root no symbolic link is followed, by any operation: paths are opened one part at a time.
"""

from __future__ import annotations

import fcntl
import os
import stat
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import IO, BinaryIO

from frazil.errors import Conflict, Malformed, Unavailable, Unknown
from frazil.load.stages.location import checked_path
from frazil.load.stages.staged_file import StagedFile, changed

HIDDEN = "."
"""Names that begin with it are not listed, among them unfinished uploads."""
FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
NS_PER_MS = 1_000_000


def temporary_file() -> IO[bytes]:
    """Return a file without a name."""
    return tempfile.TemporaryFile()


class LocalFolder:
    """Implements `StageStore`."""

    def __init__(self, root: str, folder: str) -> None:
        """`root` is an absolute path, and may be a symbolic link. `folder` is relative to it."""
        self._root = root
        self._folder = folder
        self._url = f"file://{root.rstrip('/')}/{folder}".rstrip("/")

    def list(self, prefix: str) -> Iterator[StagedFile]:
        """Yield all regular files whose path begins with `prefix`."""
        folder, _, _ = prefix.rpartition("/")
        yield from (file for file in self._walk(folder) if file.path.startswith(prefix))

    def head(self, path: str) -> StagedFile:
        with self._parent(path) as (parent, name):
            try:
                return self._file(path, os.stat(name, dir_fd=parent, follow_symlinks=False))
            except FileNotFoundError:
                raise Unknown(f"{self._url}/{path} does not exist") from None

    def open(self, file: StagedFile) -> IO[bytes]:
        """Open a file for reading. `Conflict` if it is not the one that was listed."""
        with self._parent(file.path) as (parent, name):
            try:
                flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
                descriptor = os.open(name, flags, dir_fd=parent)
            except OSError:
                raise changed(file) from None
        with ExitStack() as undo:
            stream = undo.enter_context(os.fdopen(descriptor, "rb", buffering=0))
            self.check(file, stream)
            undo.pop_all()
        return stream

    def check(self, file: StagedFile, stream: IO[bytes]) -> None:
        """Raise `Conflict` if the file was overwritten while it was read."""
        if self._file(file.path, os.fstat(stream.fileno())).etag != file.etag:
            raise changed(file)

    def put(self, path: str, chunks: Iterable[bytes], *, overwrite: bool) -> StagedFile:
        """Write a file durably. It appears as a whole."""
        with self._parent(path, creates=True) as (parent, name), ExitStack() as undo:
            try:
                if not overwrite and _exists(name, parent):
                    raise FileExistsError
                unfinished = f"{HIDDEN}{name}.upload"
                stream = undo.enter_context(self._unfinished(unfinished, parent, path))
                leftover = undo.enter_context(ExitStack())
                leftover.callback(self._unlink, unfinished, parent)
                for chunk in chunks:
                    stream.write(chunk)
                stream.flush()
                os.fsync(stream.fileno())
                if overwrite:
                    os.replace(unfinished, name, src_dir_fd=parent, dst_dir_fd=parent)
                    leftover.pop_all()  # the name may be that of the next upload already
                else:
                    os.link(unfinished, name, src_dir_fd=parent, dst_dir_fd=parent)
                os.fsync(parent)
            except FileExistsError:
                raise Conflict(
                    f"{self._url}/{path} exists; use another name or OVERWRITE=true"
                ) from None
            except OSError as error:
                raise Unavailable(
                    f"{self._url}/{path} cannot be written: {error.strerror}"
                ) from error
        return self.head(path)

    def _unfinished(self, name: str, parent: int, path: str) -> BinaryIO:
        """Open the file that an upload writes to. `Conflict` if another one is writing to it."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        with suppress(FileNotFoundError):
            if os.stat(name, dir_fd=parent, follow_symlinks=False).st_nlink > 1:
                # A crash between link and unlink: this is a second name of a finished file.
                os.unlink(name, dir_fd=parent)
        with ExitStack() as undo:
            stream: BinaryIO = undo.enter_context(
                os.fdopen(os.open(name, flags, 0o644, dir_fd=parent), "wb")
            )
            try:
                fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
                # The other upload may have ended, and renamed it, before this lock.
                is_same = os.path.samestat(
                    os.fstat(stream.fileno()), os.stat(name, dir_fd=parent, follow_symlinks=False)
                )
            except (BlockingIOError, FileNotFoundError):
                is_same = False
            if not is_same:
                raise Conflict(f"{self._url}/{path} is being uploaded by another request")
            stream.truncate(0)  # what a crash has left
            undo.pop_all()
        return stream

    def delete(self, file: StagedFile) -> None:
        """Delete a file that is still the one that was listed."""
        with self._parent(file.path) as (parent, name):
            try:
                found = os.stat(name, dir_fd=parent, follow_symlinks=False)
                if self._file(file.path, found).etag != file.etag:
                    raise changed(file)
                os.unlink(name, dir_fd=parent)
            except FileNotFoundError:
                raise changed(file) from None

    @staticmethod
    def _unlink(name: str, parent: int) -> None:
        with suppress(OSError):  # the next upload of the same name overwrites it
            os.unlink(name, dir_fd=parent)

    def _walk(self, folder: str) -> Iterator[StagedFile]:
        try:
            descriptor = self._open_folder(folder, creates=False)
        except Unknown:
            return
        folders = []
        try:
            with os.scandir(descriptor) as entries:
                for entry in sorted(entries, key=lambda entry: entry.name):
                    path = f"{folder}/{entry.name}" if folder else entry.name
                    if entry.name.startswith(HIDDEN) or entry.is_symlink():
                        continue
                    if entry.is_dir(follow_symlinks=False):
                        folders.append(path)
                    elif entry.is_file(follow_symlinks=False):
                        with suppress(FileNotFoundError):  # deleted meanwhile
                            yield self._file(path, entry.stat(follow_symlinks=False))
        finally:
            os.close(descriptor)
        for path in folders:
            yield from self._walk(path)

    def _file(self, path: str, found: os.stat_result) -> StagedFile:
        if not stat.S_ISREG(found.st_mode):
            raise Malformed(f"{self._url}/{path} is not a regular file")
        return StagedFile(
            path=path,
            uri=f"{self._url}/{path}",
            etag=f"{found.st_ino:x}-{found.st_mtime_ns:x}-{found.st_size:x}",
            size_bytes=found.st_size,
            time_ms=found.st_mtime_ns // NS_PER_MS,
        )

    @contextmanager
    def _parent(self, path: str, *, creates: bool = False) -> Iterator[tuple[int, str]]:
        """Yield the folder of a path, opened, and the name in it."""
        folder, _, name = checked_path(path).rpartition("/")
        if not name or name.startswith(HIDDEN):
            raise Malformed(f"{path!r} is not the name of a file in a stage")
        descriptor = self._open_folder(folder, creates=creates)
        try:
            yield descriptor, name
        finally:
            os.close(descriptor)

    def _open_folder(self, folder: str, *, creates: bool) -> int:
        try:
            descriptor = os.open(self._root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError as error:
            raise Unavailable(
                f"the stage root {self._root} cannot be opened: {error.strerror}"
            ) from None
        for part in f"{self._folder}/{folder}".strip("/").split("/"):
            if not part:
                continue
            try:
                if creates:
                    with suppress(FileExistsError):
                        os.mkdir(part, dir_fd=descriptor)
                        os.fsync(descriptor)
                inner = os.open(part, FOLDER_FLAGS, dir_fd=descriptor)
            except OSError as error:
                raise Unknown(
                    f"{self._url}/{folder} cannot be opened: {part} is not a folder "
                    f"({error.strerror}; symbolic links are not followed)"
                ) from None
            finally:
                os.close(descriptor)
            descriptor = inner
        return descriptor


def _exists(name: str, parent: int) -> bool:
    try:
        os.stat(name, dir_fd=parent, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True
