"""query, query_range and format_query."""

from __future__ import annotations

from frazil.errors import Malformed
from frazil.httpd import Response
from frazil.languages import (
    LineSpan,
    LogSelection,
    LogSteps,
    ReadRows,
    evaluate_logql,
    find_lines,
    logql_text,
    parse_logql,
)
from frazil.serve.doors.endpoint import DoorRequest
from frazil.serve.doors.loki import answers
from frazil.serve.doors.loki.params import NS_PER_MS, RequestTimes, line_limit, time_ns
from frazil.serve.doors.loki.rows import respond
from frazil.serve.http.handler import Handler
from frazil.serve.http.responses import answer_of

DIRECTIONS = ("backward", "forward")


async def query(handler: Handler, call: DoorRequest) -> Response:
    """Evaluate a query of numbers at one time."""
    expression = parse_logql(call.required("query"))
    if isinstance(expression, LogSelection):
        raise Malformed(
            "log queries are not supported as an instant query type, please change your query to "
            "a range query type"
        )
    at = call.first("time")
    now_ns = handler.context.clock.wall_ms() * NS_PER_MS
    moment = now_ns if at is None else time_ns(at, "time")

    def load(read: ReadRows) -> object:
        value = evaluate_logql(read, expression, LogSteps(moment, moment, 0))
        return answers.success(answers.vector_data(value, moment))

    return await respond(handler, call, load)


async def query_range(handler: Handler, call: DoorRequest) -> Response:
    """Find lines, or evaluate a query of numbers at each step."""
    expression = parse_logql(call.required("query"))
    times = RequestTimes.of(call, handler.context.clock)
    if isinstance(expression, LogSelection):
        return await _lines(handler, call, expression, times.span)
    grid = times.grid(call)

    def load(read: ReadRows) -> object:
        return answers.success(answers.matrix_data(evaluate_logql(read, expression, grid), grid))

    return await respond(handler, call, load)


async def _lines(
    handler: Handler, call: DoorRequest, selection: LogSelection, span: LineSpan
) -> Response:
    limit = line_limit(call)
    direction = (call.first("direction") or DIRECTIONS[0]).lower()
    if direction not in DIRECTIONS:
        raise Malformed(f"direction is {direction!r}; write backward or forward")
    is_newest = direction == DIRECTIONS[0]
    is_categorized = answers.CATEGORIZE in flags_of(call)

    def load(read: ReadRows) -> object:
        found = find_lines(read, selection, span, limit=limit, is_newest=is_newest)
        data = answers.streams_data(found.lines, found.read_count, is_categorized=is_categorized)
        return answers.success(data)

    return await respond(handler, call, load)


def flags_of(call: DoorRequest) -> list[str]:
    header = call.request.headers.get(answers.FLAGS_HEADER, "")
    return [flag.strip() for flag in header.split(",")]


async def format_query(_: Handler, call: DoorRequest) -> Response:
    """Write a query in one form."""
    return answer_of(answers.success(logql_text(parse_logql(call.required("query")))))
