"""Loops that find the metric series of a request, compiled by numba.

    identify      the series of every data point, as hashes
    find_service  the name of a resource's service
    find_name     the name of a metric

A series is a resource, a scope, a metric (name, unit, type) and the attributes of its data points,
in any order. The scanner has accepted the request.
"""

from __future__ import annotations

from frazil.ingest.otlp.scan_walk import Bytes, Positions, skip_value
from frazil.model.protobuf import (
    TAG_LONG,
    TAG_MAX,
    address_of,
    byte_at,
    compiled,
    inlined,
    part,
    read_length,
    read_varint32,
)

# Tags of fields with a length: the number of the field, and wire type 2.
RESOURCE_METRICS, RESOURCE, SCOPE_METRICS = 0x0A, 0x0A, 0x12
SCOPE, METRIC, NAME, UNIT = 0x0A, 0x12, 0x0A, 0x1A
GAUGE, SUM, HISTOGRAM, EXPONENTIAL, SUMMARY = 0x2A, 0x3A, 0x4A, 0x52, 0x5A
POINT, RESOURCE_ATTRIBUTE, KEY, VALUE, STRING = 0x0A, 0x0A, 0x0A, 0x12, 0x0A
POINT_ATTRIBUTE, HISTOGRAM_ATTRIBUTE, EXPONENTIAL_ATTRIBUTE = 0x3A, 0x4A, 0x0A

# Columns of a data point: where it begins, begin and end of the resource and of the metric around
# it, and the hash of its series.
POINT_BEGIN, POINT_RESOURCE, POINT_RESOURCE_END, POINT_METRIC, POINT_METRIC_END = range(5)
POINT_HASH = 5
POINT_WORDS = 6

SERVICE = tuple(b"service.name")

PRIME = 0x100000001B3
SEED = 0xCBF29CE484222325 - 2**64
MIXING = 0x9E3779B97F4A7C15 - 2**64


@inlined
def _mixed(number: int) -> int:
    number ^= number >> 29
    number *= MIXING
    return number ^ number >> 32


@part
def _hash(position: int, end: int, seed: int) -> int:
    """FNV-1a, which reads a byte at a time, mixed."""
    number = seed
    for at in range(position, end):
        number = (number ^ byte_at(at)) * PRIME
    return _mixed(number)


@inlined
def _next(position: int, end: int) -> tuple[int, int, int]:
    """Return a tag, and begin and end of its content: empty without a length."""
    tag, position = read_varint32(position, end, TAG_MAX, TAG_LONG)
    if tag & 7 != 2:
        position = skip_value(tag & 7, position, end)
        return tag, position, position
    length, position = read_length(position, end)
    return tag, position, position + length


@part
def _hash_fields(position: int, end: int, one: int, other: int, seed: int) -> int:
    """Hash the fields of a message with one of two tags, in any order."""
    number = seed
    while position < end:
        tag, content, position = _next(position, end)
        if tag in (one, other):
            number += _hash(content, position, SEED + tag)
    return number


@inlined
def _attribute_tag(kind: int) -> int:
    if kind == HISTOGRAM:
        return HISTOGRAM_ATTRIBUTE
    return EXPONENTIAL_ATTRIBUTE if kind == EXPONENTIAL else POINT_ATTRIBUTE


@compiled
def identify(body: Bytes, points: Positions) -> int:
    """Return the number of data points. Writes each to `points`, as far as it has room."""
    begin = position = address_of(body)
    end = begin + body.size
    count = 0
    while position < end:
        tag, resource, position = _next(position, end)
        if tag != RESOURCE_METRICS:
            continue
        resource_hash = _hash_fields(resource, position, RESOURCE, RESOURCE, SEED)
        at_scope = resource
        while at_scope < position:
            tag, scope, at_scope = _next(at_scope, position)
            if tag != SCOPE_METRICS:
                continue
            scope_hash = _hash_fields(scope, at_scope, SCOPE, SCOPE, _mixed(resource_hash))
            at_metric = scope
            while at_metric < at_scope:
                tag, metric, at_metric = _next(at_metric, at_scope)
                if tag != METRIC:
                    continue
                metric_hash = _hash_fields(metric, at_metric, NAME, UNIT, _mixed(scope_hash))
                at_data = metric
                while at_data < at_metric:
                    kind, data, at_data = _next(at_data, at_metric)
                    if kind not in (GAUGE, SUM, HISTOGRAM, EXPONENTIAL, SUMMARY):
                        continue
                    seed = _mixed(metric_hash + kind)
                    wanted = _attribute_tag(kind)
                    at_point = data
                    while at_point < at_data:
                        field = at_point
                        tag, point, at_point = _next(at_point, at_data)
                        if tag != POINT:
                            continue
                        if count < points.shape[0]:
                            points[count, POINT_BEGIN] = field - begin
                            points[count, POINT_RESOURCE] = resource - begin
                            points[count, POINT_RESOURCE_END] = position - begin
                            points[count, POINT_METRIC] = metric - begin
                            points[count, POINT_METRIC_END] = at_metric - begin
                            points[count, POINT_HASH] = _mixed(
                                _hash_fields(point, at_point, wanted, wanted, seed)
                            )
                        count += 1
    return count


@compiled
def find_service(body: Bytes, begin: int, end: int) -> tuple[int, int]:
    """Return begin and end of the name of the service in a ResourceMetrics; empty if it has
    none."""
    origin = address_of(body)
    found, found_end = origin, origin
    position, end = origin + begin, origin + end
    while position < end:
        tag, resource, position = _next(position, end)
        at = resource
        while tag == RESOURCE and at < position:
            inner, pair, at = _next(at, position)
            if inner == RESOURCE_ATTRIBUTE and _is_service(pair, at):
                found, found_end = _text_of(pair, at)
    return found - origin, found_end - origin


@part
def _is_service(position: int, end: int) -> bool:
    while position < end:
        tag, content, position = _next(position, end)
        if tag == KEY and position - content == len(SERVICE):
            same = 0
            while same < len(SERVICE) and byte_at(content + same) == SERVICE[same]:
                same += 1
            return same == len(SERVICE)
    return False


@part
def _text_of(position: int, end: int) -> tuple[int, int]:
    """Return begin and end of the string in a key-value pair."""
    found, found_end = end, end
    while position < end:
        tag, value, position = _next(position, end)
        at = value
        while tag == VALUE and at < position:
            inner, text, at = _next(at, position)
            if inner == STRING:
                found, found_end = text, at
    return found, found_end


@compiled
def find_name(body: Bytes, begin: int, end: int) -> tuple[int, int]:
    """Return begin and end of the name of a metric."""
    origin = address_of(body)
    found, found_end = origin, origin
    position, end = origin + begin, origin + end
    while position < end:
        tag, content, position = _next(position, end)
        if tag == NAME:
            found, found_end = content, position
    return found - origin, found_end - origin
