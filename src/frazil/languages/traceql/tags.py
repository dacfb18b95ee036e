"""Names of attributes, and their values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from frazil.errors import Malformed
from frazil.languages.traceql.conditions import condition_sql, item_or_span_sql
from frazil.languages.traceql.fields import INTRINSICS, ITEM, NESTED_SET, item_column_of
from frazil.languages.traceql.nodes import (
    NamedValue,
    SpanAttribute,
    SpanIntrinsic,
    SpansetFilter,
    SpansetPipeline,
)
from frazil.languages.traceql.parser import KINDS, STATUSES, parse_traceql
from frazil.languages.traceql.span_rows import SpanReader, group_sql
from frazil.model.arrow import words_of
from frazil.query import Ask, TimeRange, bounded
from frazil.query import sql_text as text
from frazil.query import sql_where as where

SAMPLE_ROWS = 100_000
"""Newest spans whose attribute names are listed."""
VALUES_MAX = 10_000

TagType = Literal["string", "int", "float", "bool", "duration", "keyword"]
_TYPES: dict[str, TagType] = {"i": "int", "d": "float", "b": "bool"}
_PARTS = {"resource": 0, "instrumentation": 1, "span": 2}
_MAPS = {
    "resource": "resource_attributes",
    "span": "attributes",
    "instrumentation": "scope_attributes",
}
INTRINSIC_TAGS = tuple(
    sorted(written for written, name in INTRINSICS.items() if name not in NESTED_SET)
)


@dataclass(frozen=True, slots=True)
class TagValue:
    """A value with the type in which it was sent."""

    type: TagType
    value: str


def tag_names(ask: Ask, scope: str, *, within: TimeRange, limit: int) -> list[str]:
    """List the names of the attributes of a scope in the newest spans, by name."""
    bounded(limit, "limit", VALUES_MAX)
    newest = f"FROM spans {where(within.conditions())} LIMIT {SAMPLE_ROWS}"
    if scope in _MAPS:
        keys = f"SELECT unnest(map_keys(map)) AS key FROM (SELECT {_MAPS[scope]} AS map {newest})"
    else:
        column = {"event": "events", "link": "links"}[scope]
        items = f"SELECT unnest({column}) AS item FROM (SELECT {column} {newest})"
        keys = f"SELECT unnest(map_keys(item['attributes'])) AS key FROM ({items})"
    rows = ask(f"SELECT DISTINCT key FROM ({keys}) ORDER BY key LIMIT {limit}")
    names: list[str] = rows["key"].to_pylist()
    if scope == "resource" and "service.name" not in names and names:
        names.append("service.name")
    return sorted(names)


def tag_values(
    ask: Ask, tag: NamedValue, query: str | None, *, within: TimeRange, limit: int
) -> list[TagValue]:
    """List the values of an attribute or intrinsic, the most frequent ones, by value. `query` says
    which spans count."""
    bounded(limit, "limit", VALUES_MAX)
    if isinstance(tag, SpanIntrinsic):
        words = {"span:status": STATUSES, "span:kind": KINDS}.get(tag.name)
        if words is not None:
            return [TagValue("keyword", word) for word in words]
        if tag.name in NESTED_SET:
            return []
    reader = SpanReader(SpansetPipeline((_filter_of(query),)), within)
    value, column = item_or_span_sql(tag, reader.joins), item_column_of(tag)
    spans = f"{reader.source()} {where(reader.plain_conditions() or ())}"
    if column is not None:
        spans = f"(SELECT *, unnest({column}) AS {ITEM} FROM {spans})"
    else:
        spans = f"(SELECT * FROM {spans})"
    rows = ask(
        f"SELECT {group_sql(value)} AS value, {_types_sql(tag)} AS types, count(*) AS n "
        f"FROM {spans} WHERE {value.sql} IS NOT NULL GROUP BY 1, 2 "
        f"ORDER BY n DESC, value LIMIT {limit}"
    ).to_pylist()
    is_duration = value.is_nano
    found = {
        TagValue("duration" if is_duration else _type_of(tag, row["types"]), row["value"]): None
        for row in rows
    }
    return sorted(found, key=lambda each: (each.value, each.type))


def tag_of(name: str) -> NamedValue:
    """Return the attribute or intrinsic that a name means. A name without a scope means an
    intrinsic, else an attribute of span or resource."""
    scope, dot, key = name.partition(".")
    if name in INTRINSICS:
        return SpanIntrinsic(INTRINSICS[name], name)
    if dot and not scope and key:
        return SpanAttribute("", _unquoted(key))
    if scope in (*_MAPS, "event", "link") and key:
        return SpanAttribute(scope, _unquoted(key))  # type: ignore[arg-type]  # one of the scopes
    return SpanAttribute("", _unquoted(name))


def _unquoted(key: str) -> str:
    return key[1:-1] if len(key) > 1 and key[0] == key[-1] == '"' else key


def _filter_of(query: str | None) -> SpansetFilter:
    """Return which spans count. Queries may be unfinished, since they are being written: then all
    spans count, as for those that need more than one filter."""
    try:
        pipeline = parse_traceql(query or "{}").pipeline
        stage = pipeline.stages[0]
        if len(pipeline.stages) == 1 and isinstance(stage, SpansetFilter):
            if stage.condition is not None:
                condition_sql(stage.condition, SpanReader(pipeline, TimeRange()).joins)
            return stage
    except Malformed:
        pass
    return SpansetFilter(None)


def _types_sql(tag: NamedValue) -> str:
    """SQL of `_value_types` and the place of an attribute in its map, as text."""
    if not isinstance(tag, SpanAttribute) or item_column_of(tag) is not None:
        return "NULL"
    scopes = ("span", "resource") if not tag.scope else (tag.scope,)
    places = [f"array_position(map_keys({_MAPS[scope]}), {text(tag.key)})" for scope in scopes]
    joined = " || ':' || ".join(f"coalesce(CAST({place} AS VARCHAR), '')" for place in places)
    return f"CASE WHEN _value_types IS NOT NULL THEN _value_types || ' ' || {joined} END"


def _type_of(tag: NamedValue, types: str | None) -> TagType:
    if types is None or not isinstance(tag, SpanAttribute):
        return "string"
    parts, _, places = types.partition(" ")
    scopes: Sequence[str] = ("span", "resource") if not tag.scope else (tag.scope,)
    for scope, place in zip(scopes, places.split(":"), strict=True):
        if place:
            words = words_of(parts.split("|")[_PARTS[scope]]) or []
            return _TYPES.get(words[int(place) - 1], "string") if words else "string"
    return "string"
