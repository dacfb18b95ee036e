"""DurableFileIO: files of a table on a local disk are on that disk before the catalog names them.

PyIceberg writes manifests and metadata without a sync. The catalog's own commit is synced, so after
a power cut it could name a file that is empty. Object stores promise this by themselves.
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
    """As PyIceberg's own, but for what is written to a local disk."""

    def new_output(self, location: str) -> OutputFile:  # type: ignore[override]
        scheme, _, path = self.parse_location(location, self.properties)
        if scheme in LOCAL:
            return _LocalOutput(location, Path(path), self)
        return super().new_output(location)


class _LocalOutput(OutputFile):
    """A file to be written once."""

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
                raise FileExistsError(f"{self.location} is there already")
            self._path.unlink()
        return _SyncedStream(self._path)


class _SyncedStream:
    """Synced when it is closed: the file, and its name. Left by an error it is taken away."""

    def __init__(self, path: Path) -> None:
        self._disk = RealDisk(path.parent)  # which makes the folder, durably
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
            self._give_back()
            self._disk.sync_directory("")

    def _give_back(self) -> None:
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
        self._give_back()
        # Nobody was told of it. What cannot be removed is an orphan, and is removed as such.
        with suppress(OSError):
            self._disk.unlink(self._name)
