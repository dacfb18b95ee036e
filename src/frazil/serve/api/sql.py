"""SQL over HTTP: one text in, rows out, as JSON, CSV, Arrow or Parquet."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

from frazil.errors import Malformed, TooLarge
from frazil.httpd import Response
from frazil.results import ARROW, PARQUET, Limits, Result, TableScan, columns_of, json_rows
from frazil.serve.http.handler import Asking, Handler, watched
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
"""What an `Accept` header may name."""
Query = Annotated[
    str,
    msgspec.Meta(
        min_length=1,
        examples=["SELECT service_name, count(*) FROM logs GROUP BY 1 ORDER BY 2 DESC"],
    ),
]


class SqlRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One query, and what it may take. Nobody gets more than the node's own limits."""

    sql: Query
    """One SELECT, WITH, EXPLAIN, SHOW or DESCRIBE."""
    format: Format | None = None
    """Of the answer; without it, what the header Accept names, or JSON."""
    engine: Literal["spark"] | None = None
    """Run it on Spark, in its dialect: for what is too large for the node's own engine."""
    timeout_ms: Positive | None = None
    """How long it may take."""
    rows_max: Positive | None = None
    """Rows it may give; more than that is an error, or cut: see details."""
    memory_bytes_max: Positive | None = None
    """What it may hold in memory while it runs."""
    details: bool = False
    """Say also which types the columns have, and cut at the limit of rows instead of refusing."""
    parts: bool = False
    """Say also what is read of each table, in the hot tier and in the lake: JSON in `parts`, Arrow
    in the metadata of its schema, at frazil.parts."""


class SqlAnswer(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Rows as JSON. With `details` also types, and whether there were more rows."""

    columns: list[str]
    """Their names, which need not differ."""
    rows: list[list[Any]]
    """Each has a value per column. Bytes are base64, maps are objects; numbers that JSON lacks are
    the texts NaN, Infinity and -Infinity."""
    types: list[str] | None = None
    """Of the columns, as Arrow calls them."""
    is_cut: bool | None = None
    """Were there more rows?"""
    parts: list[TableScan] | None = None
    """What was read of each table, for whoever asked for that."""


async def sql(desk: Handler, asked: SqlRequest, request: ApiRequest) -> Response | RowStream:
    """Run one query."""
    how = asked.format or _accepted(request.headers.get("accept"))
    limits = Limits(
        timeout_ms=asked.timeout_ms,
        rows_max=asked.rows_max,
        memory_bytes_max=asked.memory_bytes_max,
    )
    asking = Asking(desk.sql)
    async with watched(request, asking.cancel):
        result = await desk.run(
            lambda: asking.begin(asked.sql, limits=limits, is_on_spark=asked.engine == "spark")
        )
        if how == "json":
            bytes_max = desk.config.answer_bytes_max
            body = await desk.run(lambda: json_answer(result, bytes_max, asked))
            return answer_of_body(body, JSON)
    if how == "arrow":
        return await desk.run(
            lambda: arrow_stream(result, may_cut=asked.details, has_parts=asked.parts)
        )
    return parquet_stream(result) if how == "parquet" else csv_stream(result)


def json_answer(result: Result, bytes_max: int, asked: SqlRequest) -> bytes:
    """All rows in one document of at most `bytes_max`."""
    rows: list[bytes] = []
    size = 0
    with result:
        for batch in result:
            for row in json_rows(batch):
                size += len(row) + 1
                if size > bytes_max:
                    raise TooLarge(
                        f"the rows are above serve.answer_bytes_max ({bytes_max} bytes) in JSON; "
                        "add a LIMIT, name fewer columns, or ask for Arrow or CSV, which are sent "
                        "as they come"
                    )
                rows.append(row)
    if result.is_cut and not asked.details:
        raise TooLarge(
            f"the result has more than {result.given_count} rows, the limit of this query or "
            "query.rows_max; add a LIMIT, aggregate, or ask with details, which says so in is_cut"
        )
    columns = columns_of(result.schema)
    head = {"columns": [column["name"] for column in columns]}
    tail: dict[str, Any] = {}
    if asked.details:
        tail = {"types": [column["type"] for column in columns], "is_cut": result.is_cut}
    if asked.parts:
        tail["parts"] = result.parts()
    rest = msgspec.json.encode(tail)[1:] if tail else b"}"
    comma = b"," if tail else b""
    return b'%s,"rows":[%s]%s%s' % (msgspec.json.encode(head)[:-1], b",".join(rows), comma, rest)


def _accepted(header: str | None) -> Format:
    """What a client wants: the first of the types in his header that we have."""
    if header is None:
        return "json"
    for part in header.split(","):
        name = part.partition(";")[0].strip().lower()
        if name in FORMATS:
            return FORMATS[name]
        if name in ("*/*", "application/*"):
            return "json"
    known = ", ".join(FORMATS)
    raise Malformed(f"Accept is {header!r}; rows come as {known}")
