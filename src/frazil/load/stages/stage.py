"""Stage: a place below a root of the configuration, with its connection and its file format."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import IO, Protocol

from frazil.definitions import CreateStage, FileFormat
from frazil.errors import Malformed, TooLarge
from frazil.load.stages.location import (
    HTTP,
    LOCAL,
    StageLocation,
    checked_path,
    parse_location,
    root_of,
)
from frazil.load.stages.staged_file import StagedFile
from frazil.settings import StagesConfig, connection_options


class FileSource(Protocol):
    """Opens files that were listed."""

    def open(self, file: StagedFile) -> IO[bytes]:
        """Open a file for reading. `Conflict` if it is not the one that was listed."""

    def check(self, file: StagedFile, stream: IO[bytes]) -> None:
        """Raise `Conflict` if the file was overwritten while it was read."""


class StageStore(FileSource, Protocol):
    """Reads and writes the files of a stage; paths are relative to it."""

    def list(self, prefix: str) -> Iterator[StagedFile]:
        """Yield all files whose path begins with `prefix`."""

    def head(self, path: str) -> StagedFile:
        """Return one file. `Unknown` if it does not exist."""

    def put(self, path: str, chunks: Iterable[bytes], *, overwrite: bool) -> StagedFile:
        """Write a file, which appears as a whole. `Conflict` if it exists."""

    def delete(self, file: StagedFile) -> None:
        """Delete a file. `Conflict` if it is not the one that was listed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """A stage that can be opened, also in a task."""

    name: str
    root: StageLocation
    location: StageLocation
    options: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Entries of its connection. May hold passwords."""
    file_format: FileFormat | None = None

    def open(self) -> StageStore:
        if self.location.scheme == LOCAL:
            from frazil.load.stages.local_folder import LocalFolder

            folder = self.location.path.removeprefix(self.root.path).strip("/")
            return LocalFolder(f"/{self.root.path}", folder)
        if self.location.scheme in HTTP:
            from frazil.load.stages.web_server import WebServer

            return WebServer(self.location)
        from frazil.load.stages.bucket import Bucket

        return Bucket(self.location, self.options)


def open_stage(
    definition: CreateStage, config: StagesConfig, connections: Mapping[str, str]
) -> Stage:
    """Return the stage of a definition. `Unknown` if it is not below a root, or if its connection
    does not exist."""
    location = parse_location(definition.url)
    root = root_of(location, config.roots)
    return Stage(
        name=definition.name,
        root=root,
        location=location,
        options=connection_options(definition.connection, connections),
        file_format=definition.file_format,
    )


def staged_files(
    stage: Stage, path: str, *, files: Iterable[str] = (), files_max: int
) -> list[StagedFile]:
    """Return the files below a path, or the named ones, in order of their paths."""
    store = stage.open()
    path = path.rstrip("/") if not path or path.endswith("/") else path
    prefix = checked_path(path)
    names = list(files)
    if names:
        folder = f"{prefix}/" if prefix else ""
        return [store.head(checked_path(f"{folder}{name}")) for name in sorted(set(names))]
    found: list[StagedFile] = []
    for file in store.list(prefix):
        if prefix and file.path != prefix and not file.path.startswith(f"{prefix}/"):
            continue
        found.append(file)
        if len(found) > files_max:
            raise TooLarge(
                f"@{stage.name}/{path} has more than {files_max} files, which is "
                "stages.files_max; name a folder below it"
            )
    return sorted(found, key=lambda file: file.path)


def upload(stage: Stage, path: str, chunks: Iterable[bytes], *, overwrite: bool) -> StagedFile:
    """Write a file to a stage in a local folder."""
    if stage.location.scheme != LOCAL:
        raise Malformed(
            f"@{stage.name} is at {stage.location.url}; files are uploaded to local folders only"
        )
    return stage.open().put(path, chunks, overwrite=overwrite)
