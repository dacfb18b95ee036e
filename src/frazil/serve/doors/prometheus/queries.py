"""Endpoints that evaluate PromQL, or read what a query names."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import msgspec

from frazil.errors import Malformed
from frazil.httpd import Response
from frazil.languages import (
    PromqlAnswer,
    PromqlLimits,
    answer_pieces,
    evaluate_instant,
    evaluate_range,
    parse_promql,
    prettified,
    selections,
    series_count,
    series_exemplars,
    syntax_json,
)
from frazil.serve.doors.endpoint import DoorRequest
from frazil.serve.doors.prometheus.answers import CUT, answer, success
from frazil.serve.doors.prometheus.params import (
    LOOKBACK_MS,
    MS_PER_S,
    STEPS_MAX,
    duration_ms,
    limit_of,
    time_ms,
)
from frazil.serve.doors.prometheus.reading import Reading, respond, stream
from frazil.serve.http.handler import Handler
from frazil.serve.http.router import Reply

STATS = ("true", "all")
TOO_FINE = (
    f"exceeded maximum resolution of {STEPS_MAX:,} points per timeseries. Try decreasing the query "
    "resolution (?step=XX)"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """What both kinds of queries take."""

    text: str
    limit: int
    limits: PromqlLimits
    has_stats: bool

    @classmethod
    def of(cls, request: DoorRequest) -> _Asked:
        lookback = request.first("lookback_delta")
        return cls(
            text=_text(request),
            limit=limit_of(request),
            limits=PromqlLimits(
                steps_max=STEPS_MAX + 1,  # as Prometheus counts them
                lookback_ms=LOOKBACK_MS
                if lookback is None
                else duration_ms(lookback, "lookback_delta"),
            ),
            has_stats=bool(request.first("stats")),
        )


async def query(handler: Handler, request: DoorRequest) -> Reply:
    """Evaluate a query at one time."""
    asked, at = _Asked.of(request), _time(handler, request)
    return await _evaluated(
        handler,
        request,
        asked,
        lambda reading: evaluate_instant(
            asked.text, reading.source(), at, asked.limits, reading.token
        ),
    )


async def query_range(handler: Handler, request: DoorRequest) -> Reply:
    """Evaluate a query at the steps of a range."""
    asked = _Asked.of(request)
    start, end = (
        time_ms(request.required("start"), "start"),
        time_ms(request.required("end"), "end"),
    )
    step = duration_ms(request.required("step"), "step")
    if end < start:
        raise Malformed('invalid parameter "end": end timestamp must not be before start time')
    if step <= 0:
        raise Malformed(
            'invalid parameter "step": zero or negative query resolution step widths are not '
            "accepted. Try a positive integer"
        )
    if (end - start) // step > STEPS_MAX:
        raise Malformed(TOO_FINE)
    return await _evaluated(
        handler,
        request,
        asked,
        lambda reading: evaluate_range(
            asked.text, reading.source(), start, end, step, asked.limits, reading.token
        ),
    )


async def query_exemplars(handler: Handler, request: DoorRequest) -> Response:
    """List the exemplars of the series that a query reads."""
    text = _text(request)
    now_ms = handler.context.clock.wall_ms()
    start = _time_or(request, "start", now_ms - LOOKBACK_MS)
    end = _time_or(request, "end", now_ms)
    if end < start:
        raise Malformed('invalid parameter "end": end timestamp must not be before start time')

    def make(reading: Reading) -> bytes:
        matchers = dict.fromkeys(found for found, _, _ in selections(text, end, end, 0))
        found = series_exemplars(reading.ask, reading.source(), [*matchers], start, end)
        return success(
            [
                {
                    "seriesLabels": dict(series.labels),
                    "exemplars": [
                        {
                            "labels": each.labels,
                            "value": repr(each.value),
                            "timestamp": each.time_ms / MS_PER_S,
                        }
                        for each in series.exemplars
                    ],
                }
                for series in found
            ]
        )

    return await respond(handler, request, make)


async def format_query(handler: Handler, request: DoorRequest) -> Response:
    """Format a query."""
    text = _text(request)
    return answer(success(await handler.run(lambda: prettified(text))))


async def parse_query(handler: Handler, request: DoorRequest) -> Response:
    """Return the syntax tree of a query."""
    text = _text(request)
    return answer(success(await handler.run(lambda: syntax_json(parse_promql(text)))))


def _text(request: DoorRequest) -> str:
    text = request.first("query")
    if text is None:
        raise Malformed('invalid parameter "query": the query is empty; add one, such as up')
    return text


def _time(handler: Handler, request: DoorRequest) -> int:
    return _time_or(request, "time", handler.context.clock.wall_ms())


def _time_or(request: DoorRequest, name: str, default: int) -> int:
    text = request.first(name)
    return default if text is None else time_ms(text, name)


async def _evaluated(
    handler: Handler,
    request: DoorRequest,
    asked: _Asked,
    evaluate: Callable[[Reading], PromqlAnswer],
) -> Reply:
    clock = handler.context.clock

    def make(reading: Reading) -> Iterator[bytes]:
        begin_ns = clock.monotonic_ns()
        found = evaluate(reading)
        seconds = (clock.monotonic_ns() - begin_ns) / 1e9
        return _body(found, asked, reading, seconds)

    return await stream(handler, request, make)


def _body(found: PromqlAnswer, asked: _Asked, reading: Reading, seconds: float) -> Iterator[bytes]:
    yield b'{"status":"success","data":{'
    yield from answer_pieces(found, asked.limit)
    if asked.has_stats:
        yield b',"stats":' + msgspec.json.encode(_stats(reading.point_count, seconds))
    yield b"}"
    warnings = [*found.warnings]
    if 0 < asked.limit < series_count(found):
        warnings.append(CUT)
    for name, notes in (("warnings", warnings), ("infos", found.infos)):
        if notes:
            yield b',"%s":%s' % (name.encode(), msgspec.json.encode(list(notes)))
    yield b"}"


def _stats(point_count: int, seconds: float) -> dict[str, dict[str, float]]:
    return {
        "timings": {
            "evalTotalTime": seconds,
            "resultSortTime": 0,
            "queryPreparationTime": 0,
            "innerEvalTime": seconds,
            "execQueueTime": 0,
            "execTotalTime": seconds,
        },
        "samples": {"totalQueryableSamples": point_count, "peakSamples": point_count},
    }
