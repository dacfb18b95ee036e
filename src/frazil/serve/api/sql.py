"""Endpoint of SQL: rows as JSON, CSV, Arrow or Parquet."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, structs

from frazil.errors import Malformed, TooLarge
from frazil.httpd import Response
from frazil.model import doc
from frazil.results import (
    ARROW,
    PARQUET,
    CancelToken,
    Limits,
    Result,
    TableScan,
    WriteToken,
    columns_of,
    json_rows,
)
from frazil.serve.http.handler import Handler, run_query, watched
from frazil.serve.http.params import Positive
from frazil.serve.http.request import ApiRequest
from frazil.serve.http.responses import JSON, answer_of_body
from frazil.serve.http.row_streams import RowStream, arrow_stream, csv_stream, parquet_stream

Format = Literal["json", "csv", "arrow", "parquet"]
FORMATS: dict[str, Format] = {
    "application/json": "json",
    "text/csv": "csv",
    ARROW: "arrow",
    PARQUET: "parquet",
}
"""Response format by content type."""
Query = Annotated[
    str,
    Meta(
        min_length=1,
        examples=["SELECT service_name, count(*) FROM logs GROUP BY 1 ORDER BY 2 DESC"],
    ),
]


class SqlRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One query and its limits, which cannot exceed the node's limits."""

    sql: Annotated[Query, doc("One SELECT, WITH, EXPLAIN, SHOW or DESCRIBE.")]
    format: Annotated[Format | None, doc("Default: the Accept header, or JSON.")] = None
    engine: Annotated[
        Literal["spark"] | None,
        doc("Run on Spark, in Spark SQL: for queries too large for the node."),
    ] = None
    timeout_ms: Annotated[Positive | None, doc("Timeout of the query.")] = None
    rows_max: Annotated[
        Positive | None,
        doc("Maximum number of rows; see `details` for what happens above it."),
    ] = None
    memory_bytes_max: Annotated[Positive | None, doc("Memory limit.")] = None
    details: Annotated[bool, doc("Add column types; truncate at `rows_max`.")] = False
    at_least: Annotated[
        Annotated[tuple[WriteToken, ...], Meta(max_length=100)],
        doc("Tokens of writes to keyed tables that the query must see. It waits for them."),
    ] = ()
    parts: Annotated[
        bool,
        doc("Add what is read per table; in Arrow as schema metadata frazil.parts."),
    ] = False


class SqlAnswer(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Rows as JSON; `types` and `is_cut` only with `details`."""

    columns: Annotated[list[str], doc("Column names; duplicates are possible.")]
    rows: Annotated[
        list[list[Any]],
        doc("Bytes are base64, maps are objects; NaN and infinities are strings."),
    ]
    types: Annotated[list[str] | None, doc("Arrow types of the columns.")] = None
    is_cut: Annotated[bool | None, doc("True if there were more rows.")] = None
    parts: Annotated[list[TableScan] | None, doc("What was read per table.")] = None


async def sql(handler: Handler, params: SqlRequest, request: ApiRequest) -> Response | RowStream:
    """Run one query."""
    response_format = params.format or accepted(request.headers.get("accept"))
    limits = Limits(
        timeout_ms=params.timeout_ms,
        rows_max=params.rows_max,
        memory_bytes_max=params.memory_bytes_max,
    )
    if response_format == "json":
        limits = structs.replace(limits, bytes_max=handler.config.answer_bytes_max)
    token = CancelToken()
    run = handler.run_on_spark if params.engine == "spark" else handler.run
    async with watched(request, token):
        result = await run(
            lambda: run_query(
                handler.sql,
                token,
                params.sql,
                limits=limits,
                engine=params.engine,
                at_least=params.at_least,
            )
        )
        if response_format == "json":  # all rows are read while the client is watched
            return await rows_response(handler, result, response_format, params)
    return await rows_response(handler, result, response_format, params)


async def rows_response(
    handler: Handler, result: Result, response_format: Format, params: SqlRequest
) -> Response | RowStream:
    """Return the rows of a result in a format: JSON as a whole, the others as a stream."""
    if response_format == "json":
        bytes_max = handler.config.answer_bytes_max
        body = await handler.run(lambda: json_answer(result, bytes_max, params))
        return answer_of_body(body, JSON)
    if response_format == "arrow":
        return await handler.run(
            lambda: arrow_stream(result, may_cut=params.details, has_parts=params.parts)
        )
    return parquet_stream(result) if response_format == "parquet" else csv_stream(result)


def json_answer(result: Result, bytes_max: int, params: SqlRequest) -> bytes:
    """Encode all rows as JSON. `TooLarge` above `bytes_max`."""
    rows: list[bytes] = []
    size = 0
    with result:
        for batch in result:
            for row in json_rows(batch):
                size += len(row) + 1
                if size > bytes_max:
                    raise TooLarge(
                        f"the JSON response is above serve.answer_bytes_max ({bytes_max} bytes); "
                        "add a LIMIT, select fewer columns, or use Arrow or CSV, which are streamed"
                    )
                rows.append(row)
    if result.is_cut and not params.details:
        raise TooLarge(
            f"the result has more than {result.returned_count} rows, the limit of this query or "
            "query.rows_max; add a LIMIT, aggregate, or set details to get a truncated result"
        )
    columns = columns_of(result.schema)
    head = {"columns": [column["name"] for column in columns]}
    tail: dict[str, Any] = {}
    if params.details:
        tail = {"types": [column["type"] for column in columns], "is_cut": result.is_cut}
    if params.parts:
        tail["parts"] = result.parts()
    rest = msgspec.json.encode(tail)[1:] if tail else b"}"
    comma = b"," if tail else b""
    return b'%s,"rows":[%s]%s%s' % (msgspec.json.encode(head)[:-1], b",".join(rows), comma, rest)


def accepted(header: str | None) -> Format:
    """Return the first supported type of an `Accept` header."""
    if header is None:
        return "json"
    for part in header.split(","):
        name = part.partition(";")[0].strip().lower()
        if name in FORMATS:
            return FORMATS[name]
        if name in ("*/*", "application/*"):
            return "json"
    known = ", ".join(FORMATS)
    raise Malformed(f"Accept is {header!r}; supported are {known}")
