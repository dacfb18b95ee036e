"""Attributes and intrinsics as SQL of a row of `spans`, or of one of its events or links."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from frazil.errors import Malformed
from frazil.languages.traceql.nodes import NamedValue, SpanAttribute
from frazil.model.arrow import PROMOTED_RESOURCE, PROMOTED_SPAN, SERVICE_NAME
from frazil.query import sql_text as text

ValueKind = Literal["number", "text", "bool", "status", "kind", "attribute", "nil"]
ItemColumn = Literal["events", "links"]

ITEM = "item"
"""Alias of one event or link."""
ROOT_NAME, ROOT_SERVICE, TRACE_NANO = "trace_root_name", "trace_root_service", "trace_nano"
CHILD_COUNT = "span_child_count"

_NAMES = {
    "span:name": ("name",),
    "span:duration": ("duration",),
    "span:status": ("status",),
    "span:statusMessage": ("statusMessage",),
    "span:kind": ("kind",),
    "span:id": (),
    "span:parentID": (),
    "span:childCount": ("childCount",),
    "trace:id": (),
    "trace:rootName": ("rootName",),
    "trace:rootService": ("rootServiceName",),
    "trace:duration": ("traceDuration",),
    "event:name": (),
    "event:timeSinceStart": (),
    "link:spanID": (),
    "link:traceID": (),
    "instrumentation:name": (),
    "instrumentation:version": (),
    "nestedSetParent": (),
    "nestedSetLeft": (),
    "nestedSetRight": (),
}
INTRINSICS = {written: name for name, others in _NAMES.items() for written in (name, *others)}
"""As written -> name."""

NESTED_SET = ("nestedSetParent", "nestedSetLeft", "nestedSetRight")


@dataclass(frozen=True, slots=True)
class FieldSql:
    """SQL of a value. An attribute is text, of any type when it was sent."""

    kind: ValueKind
    sql: str
    is_whole: bool = False
    """Integer SQL, which can be compared without a cast."""
    is_nano: bool = False


INTRINSIC_SQL = {
    "span:name": FieldSql("text", "name"),
    "span:duration": FieldSql("number", "duration_nano", is_whole=True, is_nano=True),
    "span:status": FieldSql("status", "status_code"),
    "span:statusMessage": FieldSql("text", "coalesce(status_message, '')"),
    "span:kind": FieldSql("kind", "kind"),
    "span:id": FieldSql("text", "span_id"),
    "span:parentID": FieldSql("text", "coalesce(parent_span_id, '')"),
    "span:childCount": FieldSql("number", f"coalesce({CHILD_COUNT}, 0)", is_whole=True),
    "trace:id": FieldSql("text", "trace_id"),
    "trace:rootName": FieldSql("text", ROOT_NAME),
    "trace:rootService": FieldSql("text", ROOT_SERVICE),
    "trace:duration": FieldSql("number", TRACE_NANO, is_whole=True, is_nano=True),
    "event:name": FieldSql("text", f"{ITEM}['name']"),
    "event:timeSinceStart": FieldSql(
        "number", f"({ITEM}['time_unix_nano'] - time_unix_nano)", is_whole=True, is_nano=True
    ),
    "link:spanID": FieldSql("text", f"{ITEM}['span_id']"),
    "link:traceID": FieldSql("text", f"{ITEM}['trace_id']"),
    "instrumentation:name": FieldSql("text", "coalesce(scope_name, '')"),
    "instrumentation:version": FieldSql("text", "coalesce(scope_version, '')"),
}
TRACE_LEVEL = ("trace:rootName", "trace:rootService", "trace:duration")

_ATTRIBUTE_SQL = {
    "span": "attributes[{}]",
    "resource": "resource_attributes[{}]",
    "instrumentation": "scope_attributes[{}]",
    "event": f"{ITEM}['attributes'][{{}}]",
    "link": f"{ITEM}['attributes'][{{}}]",
}
_COLUMNS = {
    **{("resource", keys[0]): name for name, keys in PROMOTED_RESOURCE.items() if len(keys) == 1},
    **{
        ("span", keys[0]): name
        for name, keys in PROMOTED_SPAN.items()
        if name != "http_response_status_code"
    },
    ("resource", SERVICE_NAME): "service_name",
}
"""Scope and key -> the column that has the attribute: cheaper to read than all attributes."""


def item_column_of(field: NamedValue) -> ItemColumn | None:
    """Return whether a value is of an event or a link: a span may have many."""
    name = field.scope if isinstance(field, SpanAttribute) else field.name.partition(":")[0]
    return {"event": "events", "link": "links"}.get(name)  # type: ignore[return-value]


def field_sql(field: NamedValue) -> FieldSql:
    """SQL of an attribute or intrinsic."""
    if isinstance(field, SpanAttribute):
        return FieldSql("attribute", _attribute_sql(field))
    if field.name in NESTED_SET:
        raise Malformed(
            f"{field.written} can be selected, but not compared or grouped by; compare "
            "nestedSetParent with 0 or -1 to find root spans"
        )
    return INTRINSIC_SQL[field.name]


def _attribute_sql(field: SpanAttribute) -> str:
    if not field.scope:
        of_span = _attribute_sql(SpanAttribute("span", field.key))
        return f"coalesce({of_span}, {_attribute_sql(SpanAttribute('resource', field.key))})"
    column = _COLUMNS.get((field.scope, field.key))
    return column or _ATTRIBUTE_SQL[field.scope].format(text(field.key))
