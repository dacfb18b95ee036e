"""Endpoints of rows of keyed tables: write, look up, follow their changes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from http import HTTPStatus
from typing import Annotated, Any, Literal

import msgspec
import pyarrow as pa
from msgspec import Meta

from frazil.errors import Malformed, TooLarge
from frazil.httpd import HttpError, Response
from frazil.model import MiB, doc
from frazil.results import ARROW, WriteToken, json_objects
from frazil.serve.api.statements import who_of
from frazil.serve.api.tables import TableName, definition_of
from frazil.serve.http.handler import Handler
from frazil.serve.http.request import ApiRequest, media_type
from frazil.serve.http.responses import JSON, answer_of, answer_of_body
from frazil.serve.tables.arrow_rows import rows_of_stream, stream_of
from frazil.serve.tables.change_origins import with_origins
from frazil.serve.tables.json_lines import rows_of_lines
from frazil.serve.tables.keys import key_of_json, key_of_text
from frazil.tables import (
    Key,
    KeyedTables,
    KeyedView,
    Operation,
    RowsView,
    TableDefinition,
    WrittenRows,
    digest_of_key,
    partition_of,
    partitions_with,
    rows_of_keys,
)

NDJSON = "application/x-ndjson"
ROW_TYPES = (NDJSON, ARROW)
KEYS_MAX = 1000
CHANGES, CHANGES_MAX = 100, 10_000
WAIT_S = 10.0
"""How long a look-up waits for the offsets that it names."""
PORTION_BYTES = MiB
"""Writes up to this size take no thread while they wait for the disk."""
IDEMPOTENCY_KEY_CHARS_MAX = 255
OFFSET_MAX = 2**63 - 1

Offset = Annotated[int, Meta(ge=0, le=OFFSET_MAX)]
AtLeast = Annotated[
    Offset | None,
    doc(
        "Offset after a write to the partition of the key: wait until it is visible. Without it, "
        "wait for all that is durable; with 0, for nothing."
    ),
]
KeyText = Annotated[
    str,
    Meta(min_length=1, examples=["17"]),
    doc("The key; a JSON array if the key has several columns. One with `/`: as `key=`."),
]


class WriteParams(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Rows to write."""

    table: TableName
    operation: Annotated[
        Literal["upsert", "update", "delete"],
        doc("Put whole rows, set columns of rows that exist, or remove rows by key."),
    ] = "upsert"
    body: Annotated[bytes, doc("The rows.")]


class WriteAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """A durable write."""

    token: Annotated[WriteToken, doc("Send it as `at_least` of a query that must see the write.")]
    rows: int
    duplicate: Annotated[
        bool, doc("True if the same write, by Idempotency-Key, was stored before; it is not again.")
    ]


class RowParams(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One row."""

    table: TableName
    key: KeyText
    as_of: Annotated[Offset | None, doc("As of this offset of the partition of the key.")] = None
    at_least: AtLeast = None


class RowAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """One row."""

    row: dict[str, Any]
    partition: int
    offset: Annotated[int, doc("The row is as of this offset of its partition.")]


class DeleteRowParams(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A row to delete."""

    table: TableName
    key: KeyText


class LookupBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Keys to look up."""

    keys: Annotated[
        list[Any],
        Meta(min_length=1, max_length=KEYS_MAX),
        doc("Values, or arrays if the key has several columns."),
    ]
    at_least: Annotated[
        dict[int, int], doc("Offsets of a token, to wait for; without any, for all.")
    ] = {}


class LookupParams(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Rows to look up."""

    table: TableName
    body: Annotated[LookupBody, doc("The keys.")]


class LookupAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The rows of the keys that exist, in the order of the keys."""

    rows: list[dict[str, Any]]


class ChangesParams(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which changes to return."""

    table: TableName
    partition: Annotated[int, Meta(ge=0, le=255), doc("One partition of the table.")] = 0
    begin: Annotated[Offset, doc("First offset.")] = msgspec.field(default=0, name="from")
    end: Annotated[Offset | None, doc("First offset after them.")] = msgspec.field(
        default=None, name="to"
    )
    limit: Annotated[
        int,
        Meta(ge=1, le=CHANGES_MAX),
        doc("About how many. Changes of one write are never split."),
    ] = CHANGES


class ChangesAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """Changes of a partition, in order."""

    changes: Annotated[
        list[dict[str, Any]],
        doc(
            "`_change` (insert, update, delete), `_offset`, `_time` when it was written and `_by` "
            "by whom (null if the log no longer has it), and the columns after the change."
        ),
    ]
    next: Annotated[int, doc("Send it as `from` to continue.")]
    end: Annotated[int, doc("First offset that is not known yet.")]


class HistoryParams(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Whose history to return."""

    table: TableName
    key: KeyText
    at_least: AtLeast = None


class HistoryAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The versions of one row that are still known, in order."""

    versions: Annotated[
        list[dict[str, Any]],
        doc("Like changes; `_change` is null if it is older than what is kept."),
    ]


async def write_rows(handler: Handler, params: WriteParams, request: ApiRequest) -> Response:
    """Write rows; responds when they are durable. All of them are written, or none."""
    tables, bytes_max = handler.tables, handler.config.rows_bytes_max
    operation = Operation[params.operation.upper()]
    kind = media_type(request.headers.get("content-type", ""))

    def read() -> tuple[TableDefinition, pa.RecordBatch | pa.Table]:
        definition = definition_of(tables, params.table)
        if kind == NDJSON:
            return definition, rows_of_lines(definition, operation, params.body)
        return definition, rows_of_stream(params.body, bytes_max)

    return await _write(handler, operation, read, request)


async def delete_row(handler: Handler, params: DeleteRowParams, request: ApiRequest) -> Response:
    """Delete the row of a key, if it exists; responds when that is durable."""
    tables = handler.tables

    def read() -> tuple[TableDefinition, pa.Table]:
        definition = definition_of(tables, params.table)
        return definition, rows_of_keys(definition, [key_of_text(definition, params.key)])

    return await _write(handler, Operation.DELETE, read, request)


async def _write(
    handler: Handler,
    operation: Operation,
    read: Callable[[], tuple[TableDefinition, pa.RecordBatch | pa.Table]],
    request: ApiRequest,
) -> Response:
    """Write the rows that `read` returns. No thread waits for the disk, unless they are many."""
    tables, key = handler.tables, request.headers.get("idempotency-key")
    by = f"http:{who_of(request.headers.get('authorization'))}"

    def start() -> tuple[str, int, Future[WrittenRows]]:
        definition, rows = read()
        name, digest = definition.name, _digest(definition, operation, key)
        if rows.nbytes <= PORTION_BYTES:
            sent = tables.begin_write(name, operation, rows, digest=digest, by=by)
        else:
            sent = Future()
            sent.set_result(tables.write_rows(name, operation, rows, digest=digest, by=by))
        return name, rows.num_rows, sent

    name, count, sent = await handler.run(start)
    written = await asyncio.wrap_future(sent)
    token = WriteToken(table=name, offsets=written.token)
    return answer_of(WriteAnswer(token=token, rows=count, duplicate=written.is_duplicate))


async def one_row(handler: Handler, params: RowParams, _: ApiRequest) -> Response:
    """Return the row of a key."""
    tables = handler.tables

    def load() -> bytes:
        key, view = _view_for(tables, params.table, params.key, params.at_least)
        number = view.partition_of(key)
        rows = view.partitions[number]
        if params.as_of is not None:
            rows = rows.as_of(params.as_of)
        found = rows.get_many([key])
        if not found.num_rows:
            raise HttpError(HTTPStatus.NOT_FOUND, f"table {params.table} has no row {params.key}")
        (row,) = json_objects(found)
        return b'{"row":%s,"partition":%d,"offset":%d}' % (row, number, rows.end_offset)

    return answer_of_body(await handler.run(load), JSON)


async def lookup(handler: Handler, params: LookupParams, request: ApiRequest) -> Response:
    """Return the rows of many keys, as JSON or Arrow."""
    tables = handler.tables

    def load() -> pa.RecordBatch:
        definition = definition_of(tables, params.table)
        keys = [key_of_json(definition, key) for key in params.body.keys]
        return _view(tables, definition, keys, params.body.at_least).get_many(keys)

    accept = media_type(request.headers.get("accept", "").partition(",")[0])
    if accept == ARROW:
        return answer_of_body(await handler.run(lambda: stream_of(load())), ARROW.encode())
    body = await handler.run(lambda: b'{"rows":[%s]}' % b",".join(json_objects(load())))
    return answer_of_body(body, JSON)


async def changes(handler: Handler, params: ChangesParams, _: ApiRequest) -> Response:
    """Return changes of a partition, in order, from an offset on; all that are durable now."""
    tables, bytes_max = handler.tables, handler.config.answer_bytes_max

    def load() -> bytes:
        definition = definition_of(tables, params.table)
        if params.partition >= definition.partitions:
            raise Malformed(f"table {params.table} has {definition.partitions} partitions")
        view = tables.latest(params.table, [params.partition])
        rows = view.partitions[params.partition]
        end = rows.end_offset if params.end is None else min(params.end, rows.end_offset)
        begin = params.begin
        if params.end is not None and params.end < begin:
            raise Malformed(f"to is {params.end}, which is below from, {begin}")
        found, next_offset = _some_changes(rows, begin, max(begin, end), params.limit)
        return b'{"changes":[%s],"next":%d,"end":%d}' % (
            _objects(with_origins(tables, params.table, params.partition, found), bytes_max),
            next_offset,
            rows.end_offset,
        )

    return answer_of_body(await handler.run(load), JSON)


async def history(handler: Handler, params: HistoryParams, _: ApiRequest) -> Response:
    """Return the versions of one row that are still known."""
    tables, bytes_max = handler.tables, handler.config.answer_bytes_max

    def load() -> bytes:
        key, view = _view_for(tables, params.table, params.key, params.at_least)
        partition = view.partition_of(key)
        versions = view.partitions[partition].history(key)
        found = with_origins(tables, params.table, partition, versions)
        return b'{"versions":[%s]}' % _objects(found, bytes_max)

    return answer_of_body(await handler.run(load), JSON)


def _some_changes(view: RowsView, begin: int, end: int, limit: int) -> tuple[pa.RecordBatch, int]:
    """Return changes from `begin` on, of whole offsets, and the offset after them."""
    end = min(end, begin + limit)  # most offsets have a change
    found = view.changes(begin, end)
    if found.num_rows <= limit:
        return found, end
    offsets = found["_offset"].to_pylist()
    first_left_out = offsets[limit]
    if first_left_out == offsets[0]:
        first_left_out += 1  # one write is above the limit, and is not split
    count = sum(offset < first_left_out for offset in offsets)
    return found.slice(0, count), first_left_out


def _objects(batch: pa.RecordBatch, bytes_max: int) -> bytes:
    objects, size = [], 0
    for row in json_objects(batch):
        size += len(row) + 1
        if size > bytes_max:
            raise TooLarge(
                f"the response is above serve.answer_bytes_max ({bytes_max} bytes); ask for less"
            )
        objects.append(row)
    return b",".join(objects)


def _digest(definition: TableDefinition, operation: Operation, key: str | None) -> bytes | None:
    if key is None:
        return None
    if not 0 < len(key) <= IDEMPOTENCY_KEY_CHARS_MAX:
        raise Malformed(f"Idempotency-Key has 1 to {IDEMPOTENCY_KEY_CHARS_MAX} characters")
    return digest_of_key(definition, operation, key)


def _view(
    tables: KeyedTables, definition: TableDefinition, keys: Sequence[Key], at_least: dict[int, int]
) -> KeyedView:
    """Return a view for these keys that has these offsets; without any, all that is durable."""
    if at_least:
        return tables.wait(definition.name, at_least, WAIT_S)
    return tables.latest(definition.name, partitions_with(definition, keys))


def _view_for(
    tables: KeyedTables, name: str, text: str, at_least: int | None
) -> tuple[Key, KeyedView]:
    """Return the key in a path, and a view that has what it must have."""
    definition = definition_of(tables, name)
    key = key_of_text(definition, text)
    token = {} if at_least is None else {partition_of(definition, key): at_least}
    return key, _view(tables, definition, [key], token)
