"""DurableFileIO: sync table files on a local disk before the catalog names them.

PyIceberg writes manifests and metadata without fsync, but the catalog's commit is synced: after a
power cut the catalog could name an empty file. Object stores are durable without this.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from pyiceberg.io import InputFile, OutputFile, OutputStream
from pyiceberg.io.pyarrow import PyArrowFileIO

from frazil.disk import RealDisk

LOCAL = frozenset({"", "file"})


class DurableFileIO(PyArrowFileIO):
    """PyIceberg's FileIO, with fsync for files on a local disk."""

    def new_output(self, location: str) -> OutputFile:  # type: ignore[override]
        scheme, _, path = self.parse_location(location, self.properties)
        if scheme in LOCAL:
            return _LocalOutput(location, Path(path), self)
        return super().new_output(location)


class _LocalOutput(OutputFile):
    """A local file that is written once."""

    def __init__(self, location: str, path: Path, io: DurableFileIO) -> None:
        super().__init__(location)
        self._path = path
        self._io = io

    def __len__(self) -> int:
        return self._path.stat().st_size

    def exists(self) -> bool:
        return self._path.exists()

    def to_input_file(self) -> InputFile:
        return self._io.new_input(self.location)

    def create(self, overwrite: bool = False) -> OutputStream:
        if self._path.exists():
            if not overwrite:
                raise FileExistsError(f"{self.location} exists already")
            self._path.unlink()
        return _SyncedStream(self._path)


class _SyncedStream:
    """Syncs the file and its directory on close. Deletes the file if the `with` block fails."""

    def __init__(self, path: Path) -> None:
        self._disk = RealDisk(path.parent)  # creates the folder durably
        self._name = path.name
        self._file = self._disk.open(path.name, "create")
        self._position = 0
        self._is_closed = False

    def write(self, b: bytes) -> int:
        self._file.append([b])
        self._position += len(b)
        return len(b)

    def tell(self) -> int:
        return self._position

    def close(self) -> None:
        if not self._is_closed:
            self._file.sync()
            self._close_file()
            self._disk.sync_directory("")

    def _close_file(self) -> None:
        self._is_closed = True
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is None:
            self.close()
            return
        self._close_file()
        # No table refers to it yet. If this fails, orphan file removal deletes it later.
        with suppress(OSError):
            self._disk.unlink(self._name)
