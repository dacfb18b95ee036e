"""What requests ask for: searches, trace ids, time ranges."""

from __future__ import annotations

import datetime

from frazil.errors import Malformed
from frazil.query import TimeRange
from frazil.serve.doors.jaeger.params import LIMIT_DEFAULT, JaegerSearch, search_of, tag_text
from frazil.serve.doors.jaeger.v1 import TRACE_IDS_MAX
from frazil.serve.http.request import EARLIEST, LATEST
from frazil.serve.jaeger_storage.messages import parse, text_of
from frazil.serve.proto_messages import Message

NS_PER_S, NS_PER_US = 1_000_000_000, 1_000
NANO_MAX = 2**63 - 1
ID_BYTES = 16
NO_TIME_S = -62_135_596_800
"""The year 1: what Jaeger sends for a time that is not set."""
PLAIN_VALUES = ("string_value", "bool_value", "int_value", "double_value")


def trace_ids_of(body: bytes) -> list[str]:
    """Return the ids that GetTraces asks for, each once. Times beside them are a hint on where to
    look, and not needed here."""
    ids = dict.fromkeys(_trace_id(each.trace_id) for each in parse("GetTracesRequest", body).query)
    if len(ids) > TRACE_IDS_MAX:
        raise Malformed(f"there are {len(ids)} trace ids; use at most {TRACE_IDS_MAX}")
    return list(ids)


def _trace_id(content: bytes) -> str:
    if len(content) != ID_BYTES:
        raise Malformed(f"a trace id has {len(content)} bytes; it must have {ID_BYTES}")
    return content.hex()


def search_in(body: bytes) -> JaegerSearch:
    """Return what FindTraces and FindTraceIDs ask for."""
    query = parse("FindTracesRequest", body).query
    for field in ("filter", "pagination"):
        if query.HasField(field):
            raise Malformed(f"{field} is not supported; use the other fields of the query")
    if query.search_depth < 0:
        raise Malformed(f"search_depth is {query.search_depth}; it must not be negative")
    return search_of(
        service=text_of(query, "service_name") or None,
        operation=text_of(query, "operation_name") or None,
        tags=_tags(query),
        nanos_min=_nanos(query, "duration_min"),
        nanos_max=_nanos(query, "duration_max"),
        within=time_range(query, "start_time_min", "start_time_max"),
        limit=query.search_depth or LIMIT_DEFAULT,
    )


def time_range(message: Message, since: str, until: str) -> TimeRange:
    """Return the time range of two fields, without the bounds that are not set."""
    return TimeRange(since=_time(message, since), until=_time(message, until))


def _tags(query: Message) -> dict[str, str]:
    tags: dict[str, str] = {}
    for attribute in query.attributes:
        key, value = text_of(attribute, "key"), attribute.value
        kind = next((kind for kind in PLAIN_VALUES if value.HasField(kind)), None)
        if not key or kind is None:
            raise Malformed(
                f"the attribute {key[:100]!r} has no key, or no value to compare; use a text, a "
                "number or a boolean"
            )
        text = text_of(value, kind) if kind == "string_value" else tag_text(getattr(value, kind))
        if tags.setdefault(key, text) != text:
            raise Malformed(f"the attribute {key[:100]!r} is there twice, with different values")
    return tags


def _nanos(query: Message, field: str) -> int | None:
    """Return a duration; None if it is not set, or 0, which is the same to Jaeger."""
    given = getattr(query, field)
    nanos = given.seconds * NS_PER_S + given.nanos
    if nanos < 0:
        raise Malformed(f"{field} is negative")
    return min(nanos, NANO_MAX) or None


def _time(message: Message, field: str) -> datetime.datetime | None:
    given = getattr(message, field)
    if not message.HasField(field) or given.seconds <= NO_TIME_S:
        return None
    if not 0 <= given.nanos < NS_PER_S:
        raise Malformed(f"{field} has {given.nanos} ns beside its seconds")
    seconds = min(max(int(EARLIEST.timestamp()), given.seconds), int(LATEST.timestamp()))
    moment = datetime.datetime.fromtimestamp(seconds, datetime.UTC)
    return moment + datetime.timedelta(microseconds=given.nanos // NS_PER_US)
