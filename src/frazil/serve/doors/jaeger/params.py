"""What a search asks for, as conditions of TraceQL."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import msgspec

from frazil.errors import Malformed
from frazil.languages import (
    FieldExpression,
    FieldLiteral,
    FieldOperation,
    SpanAttribute,
    SpanIntrinsic,
    SpansetPipeline,
    spans_with,
)
from frazil.query import TimeRange
from frazil.serve.doors.endpoint import DoorRequest
from frazil.serve.doors.trace_params import ID_CHARS, duration, number, timestamp

LIMIT_DEFAULT = 20
TAGS_MAX = 32
NS_PER_US = 1000
US_PER_S = 1_000_000
KINDS = ("unspecified", "internal", "server", "client", "producer", "consumer")
STATUSES = ("UNSET", "OK", "ERROR")


@dataclass(frozen=True, slots=True, kw_only=True)
class JaegerSearch:
    """Which traces: those with a span that meets the conditions of `pipeline`."""

    pipeline: SpansetPipeline
    within: TimeRange
    limit: int


def search_of(
    *,
    service: str | None,
    operation: str | None,
    tags: Mapping[str, str],
    nanos_min: int | None,
    nanos_max: int | None,
    within: TimeRange,
    limit: int,
) -> JaegerSearch:
    """Return a search for traces with a span that meets all conditions. None: any."""
    if len(tags) > TAGS_MAX:
        raise Malformed(f"there are {len(tags)} tags; use at most {TAGS_MAX}")
    spans = [*_conditions(service, operation, tags), *_durations(nanos_min, nanos_max)]
    return JaegerSearch(pipeline=spans_with(spans), within=within, limit=limit)


def search_v1(call: DoorRequest) -> JaegerSearch:
    """Return what the parameters of /api/traces ask for. Times are in microseconds."""
    tags = _json_tags(call.first("tags"))
    for text in call.fields.get("tag", ()):
        key, colon, value = text.partition(":")
        if not colon or not key:
            raise Malformed(f"tag is {text[:100]!r}; write key:value")
        tags[key] = value
    return search_of(
        service=call.first("service"),
        operation=call.first("operation"),
        tags=tags,
        nanos_min=_nanos(call, "minDuration"),
        nanos_max=_nanos(call, "maxDuration"),
        within=TimeRange(since=_micros(call, "start"), until=_micros(call, "end")),
        limit=number(call, "limit", LIMIT_DEFAULT),
    )


def search_v3(call: DoorRequest) -> JaegerSearch:
    """Return what the parameters of /api/v3/traces ask for."""
    named = {_snake_case(name.removeprefix("query.")): each for name, each in call.fields.items()}
    plain = replace(call, fields=named)
    return search_of(
        service=plain.first("service_name"),
        operation=plain.first("operation_name"),
        tags=_json_tags(plain.first("attributes")),
        nanos_min=_nanos(plain, "duration_min"),
        nanos_max=_nanos(plain, "duration_max"),
        within=TimeRange(
            since=_timestamp(plain, "start_time_min"), until=_timestamp(plain, "start_time_max")
        ),
        limit=number(plain, "search_depth", number(plain, "num_traces", LIMIT_DEFAULT)),
    )


def _snake_case(name: str) -> str:
    """`serviceName` becomes `service_name`: clients write both."""
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)


def _json_tags(text: str | None) -> dict[str, str]:
    try:
        tags = msgspec.json.decode(text or "{}", type=dict[str, str | int | float | bool])
    except (msgspec.DecodeError, msgspec.ValidationError):
        raise Malformed(
            f'tags are {text!r:.100}; write a JSON object, such as {{"http.route":"/"}}'
        ) from None
    return {key: tag_text(value) for key, value in tags.items()}


def tag_text(value: str | float) -> str:
    """Return the value of a tag as it is compared."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _conditions(
    service: str | None, operation: str | None, tags: Mapping[str, str]
) -> Iterator[FieldExpression]:
    if service is not None:
        yield _equals(SpanAttribute("resource", "service.name"), service)
    if operation is not None:
        yield _equals(SpanIntrinsic("span:name", "name"), operation)
    for key, value in tags.items():
        yield _tag_condition(key, value)


def _tag_condition(key: str, value: str) -> FieldExpression:
    """Return the condition of a tag; some tags are columns of spans here."""
    if key == "error" and value in ("true", "false"):
        sign = "=" if value == "true" else "!="
        status = SpanIntrinsic("span:status", "status")
        return FieldOperation(sign, status, FieldLiteral("status", "ERROR"))
    if key == "span.kind" and value.lower() in KINDS:
        kind = SpanIntrinsic("span:kind", "kind")
        return FieldOperation("=", kind, FieldLiteral("kind", value.upper()))
    if key == "otel.status_code" and value.upper() in STATUSES:
        status = SpanIntrinsic("span:status", "status")
        return FieldOperation("=", status, FieldLiteral("status", value.upper()))
    if key in ("otel.scope.name", "otel.library.name"):
        return _equals(SpanIntrinsic("instrumentation:name", key), value)
    return _equals(SpanAttribute("", key), value)


def _equals(field: FieldExpression, value: str) -> FieldExpression:
    return FieldOperation("=", field, FieldLiteral("text", value))


def _durations(nanos_min: int | None, nanos_max: int | None) -> Iterator[FieldExpression]:
    for nanos, sign in ((nanos_min, ">="), (nanos_max, "<=")):
        if nanos is not None:
            of_span = SpanIntrinsic("span:duration", "duration")
            yield FieldOperation(sign, of_span, FieldLiteral("duration", nanos))


def _nanos(call: DoorRequest, name: str) -> int | None:
    bound = duration(call, name)
    return None if bound is None else bound // datetime.timedelta(microseconds=1) * NS_PER_US


def _micros(call: DoorRequest, name: str) -> datetime.datetime | None:
    text = call.first(name)
    if text is None:
        return None
    if text.isascii() and text.isdigit() and len(text) < ID_CHARS:
        try:
            return datetime.datetime.fromtimestamp(int(text) / US_PER_S, datetime.UTC)
        except (ValueError, OverflowError, OSError):
            pass
    raise Malformed(f"{name} is {text[:100]!r}; write microseconds since 1970")


def _timestamp(call: DoorRequest, name: str) -> datetime.datetime | None:
    text = call.first(name)
    if text is None:
        return None
    # Grafana does not escape the plus of a time zone, which then is a space.
    return timestamp(text.replace(" ", "+"), name, "a time such as 2026-11-16T10:00:00Z")
