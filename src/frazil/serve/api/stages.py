"""Endpoints of stages: their files, the first rows of one, and uploads. They have the tokens of
statements: a stage may have files that queries do not show."""

from __future__ import annotations

import datetime
import json
from collections.abc import Iterator
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from frazil.definitions import FileFormat, FormatType
from frazil.errors import FrazilError, reason_of
from frazil.httpd import Response
from frazil.load import FilePreview, StagedFile, type_name
from frazil.model import NS_PER_MS, doc
from frazil.results import json_of
from frazil.serve.api.loads import loader_of, or_not_found
from frazil.serve.api.statements import executor_of, who_of
from frazil.serve.http.handler import Handler
from frazil.serve.http.request import ApiRequest
from frazil.serve.http.responses import JSON, answer_of_body
from frazil.serve.http.upload_body import write_body

FILES_MAX = 1000
PREVIEW_ROWS = 50
CELL_CHARACTERS_MAX = 200
PATH_MAX = 1024

StageName = Annotated[str, Meta(max_length=64, description="Name of a stage.")]
FilePath = Annotated[str, Meta(max_length=PATH_MAX)]


class StageFilesRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which files to list."""

    stage: StageName
    path: Annotated[FilePath, doc("A folder of the stage, or a file; default: the stage.")] = ""
    limit: Annotated[int, Meta(ge=1, le=FILES_MAX, description="Maximum number of files.")] = (
        FILES_MAX
    )


class StageFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file of a stage."""

    path: Annotated[str, doc("Relative to the stage.")]
    uri: str
    etag: str
    size_bytes: int
    modified_at: datetime.datetime


class StageFiles(msgspec.Struct, frozen=True, kw_only=True):
    """Files of a stage."""

    files: list[StageFile]
    is_cut: Annotated[bool, doc("Whether there are more.")]


class PreviewRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which file to read the beginning of."""

    stage: StageName
    path: Annotated[FilePath, Meta(min_length=1, description="A file of the stage.")]
    type: Annotated[
        FormatType | None, doc("Format; default: that of the stage, or by the file's name.")
    ] = None
    rows: Annotated[int, Meta(ge=1, le=1000, description="Maximum number of rows.")] = PREVIEW_ROWS


class PreviewColumn(msgspec.Struct, frozen=True, kw_only=True):
    """A column of a file."""

    name: str
    type: Annotated[str, doc("As COPY INTO declares it.")]


class PreviewError(msgspec.Struct, frozen=True, kw_only=True):
    """A row that cannot be loaded."""

    line: int
    column: str
    reason: str


class PreviewAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The beginning of a file: a MiB of a text, or the first rows."""

    file: StageFile
    format: str
    columns: Annotated[list[PreviewColumn], doc("Inferred from what was read.")]
    rows: Annotated[list[list[str | None]], doc("Values as text, cut at 200 characters.")]
    errors: list[PreviewError]
    is_cut: Annotated[bool, doc("Whether the file has more rows.")]
    is_whole: Annotated[bool, doc("Whether the columns are inferred from the whole file.")]


class UploadRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where to store the body."""

    stage: StageName
    path: Annotated[FilePath, doc("Path of the file in the stage; may contain slashes.")]
    overwrite: Annotated[bool, doc("Replace the file if it exists.")] = False


async def files(handler: Handler, params: StageFilesRequest, _: ApiRequest) -> Response:
    """List files of a stage."""
    loader = loader_of(handler)

    def listed() -> StageFiles:
        found, is_cut = loader.files(params.stage, params.path, params.limit)
        return StageFiles(files=[_file(each) for each in found], is_cut=is_cut)

    return await handler.respond_without_sql(lambda: or_not_found(listed))


async def preview(handler: Handler, params: PreviewRequest, _: ApiRequest) -> Response:
    """Return the first rows of a file, and the columns inferred from them."""
    loader = loader_of(handler)
    chosen = None if params.type is None else FileFormat(type=params.type)

    def read() -> PreviewAnswer:
        return _preview(loader.preview(params.stage, params.path, chosen, params.rows))

    return await handler.respond_without_sql(lambda: or_not_found(read))


async def upload(handler: Handler, params: UploadRequest, request: ApiRequest) -> Response:
    """Store the body as a file of a stage in a local folder; durable when this responds."""
    loader = loader_of(handler)
    audit, clock = executor_of(handler).audit, handler.context.clock
    who = who_of(request.headers.get("authorization"))

    def write(chunks: Iterator[bytes]) -> bytes:
        text = f"UPLOAD @{params.stage}/{params.path}"
        begin_ns = clock.monotonic_ns()
        entry = audit.begin(who, "UPLOAD", text)
        outcome, message = "failed", "internal error; see the log of the node"
        try:
            file = loader.upload(params.stage, params.path, chunks, overwrite=params.overwrite)
            outcome, message = "ok", ""
        except FrazilError as error:
            outcome, message = reason_of(error), str(error)
            raise
        finally:
            audit.end(entry, outcome, message, (clock.monotonic_ns() - begin_ns) // NS_PER_MS)
        return json_of(_file(file))

    body = await write_body(handler, request, lambda chunks: or_not_found(lambda: write(chunks)))
    return answer_of_body(body, JSON)


def _file(file: StagedFile) -> StageFile:
    return StageFile(
        path=file.path,
        uri=file.uri,
        etag=file.etag,
        size_bytes=file.size_bytes,
        modified_at=datetime.datetime.fromtimestamp(file.time_ms / 1000, datetime.UTC),
    )


def _preview(found: FilePreview) -> PreviewAnswer:
    return PreviewAnswer(
        file=_file(found.file),
        format=found.file_format.type,
        columns=[
            PreviewColumn(name=field.name, type=type_name(field.type)) for field in found.schema
        ],
        rows=[[_text(value) for value in row.values()] for row in found.rows.to_pylist()],
        errors=[
            PreviewError(line=each.line, column=each.column, reason=each.reason)
            for each in found.errors
        ],
        is_cut=found.is_cut,
        is_whole=found.is_whole,
    )


def _text(value: Any) -> str | None:
    """Return a value as a cell shows it."""
    if value is None:
        return None
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict | list):
        value = json.dumps(value, ensure_ascii=False, default=str)
    if isinstance(value, bytes):
        value = value.hex()
    return str(value)[:CELL_CHARACTERS_MAX]
