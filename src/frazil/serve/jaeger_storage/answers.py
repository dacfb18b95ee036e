"""What the methods answer. Bodies of requests come as bytes, answers leave as bytes; all run in
threads."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

import pyarrow as pa

from frazil.languages import find_trace_ids, rows_of_traces
from frazil.model import MiB
from frazil.query import Ask, operation_names, service_names
from frazil.serve.doors.jaeger.v1 import call_counts, kind_of, kind_text
from frazil.serve.doors.tempo.traces import trace_message
from frazil.serve.jaeger_storage.messages import bytes_of, parse, text_of
from frazil.serve.jaeger_storage.requests import search_in, time_range, trace_ids_of

MESSAGE_BYTES = MiB
"""Longer traces are sent in parts: clients take messages of up to 4 MiB."""

Answer: TypeAlias = Callable[[Ask, bytes], bytes]
Answers: TypeAlias = Callable[[Ask, bytes], Iterator[bytes]]


def get_services(ask: Ask, body: bytes) -> bytes:
    """List the services that send spans."""
    parse("GetServicesRequest", body)
    return bytes_of("GetServicesResponse", services=service_names(ask))


def get_operations(ask: Ask, body: bytes) -> bytes:
    """List the operations of a service with their kinds, or those of one kind."""
    request = parse("GetOperationsRequest", body)
    kind = kind_of(text_of(request, "span_kind") or None)
    found = operation_names(ask, text_of(request, "service"), kind=kind)
    operations = [{"name": name, "span_kind": kind_text(each)} for name, each in found]
    return bytes_of("GetOperationsResponse", operations=operations)


def get_traces(ask: Ask, body: bytes) -> Iterator[bytes]:
    """Return traces by their ids; those that do not exist are left out."""
    return _traces(ask, trace_ids_of(body))


def find_traces(ask: Ask, body: bytes) -> Iterator[bytes]:
    """Return the traces that match, those with the newest matching spans first."""
    return _traces(ask, _found(ask, body))


def find_trace_ids_only(ask: Ask, body: bytes) -> bytes:
    """Return the ids of the traces that match."""
    ids = [{"trace_id": bytes.fromhex(each)} for each in _found(ask, body)]
    return bytes_of("FindTraceIDsResponse", trace_ids=ids)


def get_dependencies(ask: Ask, body: bytes) -> bytes:
    """List calls between services."""
    within = time_range(parse("GetDependenciesRequest", body), "start_time", "end_time")
    calls = [
        {"parent": caller, "child": callee, "call_count": count}
        for caller, callee, count in call_counts(ask, within)
    ]
    return bytes_of("GetDependenciesResponse", dependencies=calls)


def _found(ask: Ask, body: bytes) -> list[str]:
    search = search_in(body)
    return find_trace_ids(ask, search.pipeline, within=search.within, limit=search.limit)


def _traces(ask: Ask, trace_ids: Sequence[str]) -> Iterator[bytes]:
    """Yield messages with spans of one trace each; those of a trace follow each other."""
    for _, rows in rows_of_traces(ask, trace_ids):
        yield from messages_of(rows)


def messages_of(rows: pa.Table, bytes_max: int = MESSAGE_BYTES) -> Iterator[bytes]:
    """Yield a trace in messages of about `bytes_max`. A span is never split."""
    body = trace_message(rows)
    part_count = min(-(-len(body) // bytes_max), rows.num_rows)
    if part_count <= 1:
        yield body
        return
    size = -(-rows.num_rows // part_count)
    for begin in range(0, rows.num_rows, size):
        yield from messages_of(rows.slice(begin, size), bytes_max)
