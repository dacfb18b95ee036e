"""PromoteRule: an attribute that gets a column of its own.

[[promote]]
table = "spans"
key = "http.request.body.size"
type = "BIGINT"
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

import msgspec

from frazil.errors import InvalidSetting
from frazil.model import PromotedColumn, PromotedOf, PromotedType, Promotions

PROMOTED_MAX = 60
"""Promoted columns of one table."""
KEY_LENGTH_MAX = 1024
NAME = re.compile(r"[a-z][a-z0-9_]{0,99}")
OTHER = re.compile(r"[^a-z0-9]")

_COMMON = (
    "time time_unix_nano ingest_time service_name service_namespace service_instance_id "
    "deployment_environment host_name k8s_namespace_name k8s_pod_name k8s_container_name "
    "scope_name scope_version resource_schema_url scope_schema_url resource_attributes "
    "scope_attributes resource_dropped_attributes_count scope_dropped_attributes_count "
    "flags attributes topic"
)
_LOGS = (
    "observed_time_unix_nano trace_id span_id severity_number severity_text event_name body "
    "body_type dropped_attributes_count"
)
_SPANS = (
    "trace_id span_id parent_span_id trace_state name kind end_time_unix_nano duration_nano "
    "status_code status_message http_request_method http_response_status_code http_route url_path "
    "db_system rpc_system rpc_method messaging_system events links dropped_events_count "
    "dropped_links_count dropped_attributes_count"
)
_METRICS = (
    "metric_name metric_type description unit start_time_unix_nano value_double value_int count "
    "sum min max bucket_counts explicit_bounds scale zero_count zero_threshold positive_offset "
    "positive_bucket_counts negative_offset negative_bucket_counts quantiles "
    "aggregation_temporality is_monotonic metadata exemplars value"
)
TAKEN = {
    table: frozenset(f"{_COMMON} {names}".split())
    for table, names in {"logs": _LOGS, "spans": _SPANS, "metrics": _METRICS}.items()
}
"""Table -> names that its columns, and those of views over it, have already. Written out, because
this module loads no Arrow; a test compares with the tables."""


class PromoteRule(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One attribute and its column."""

    table: Literal["logs", "spans", "metrics"]
    key: str
    of: PromotedOf = "record"
    """Whose attribute it is."""
    type: PromotedType = "VARCHAR"
    column: str | None = None
    """Name of the column. By default that of the key, in lower case, with `_` for anything but
    letters and digits."""

    @property
    def promoted(self) -> PromotedColumn:
        name = OTHER.sub("_", self.key.lower()) if self.column is None else self.column
        return PromotedColumn(name=name, of=self.of, key=self.key, kind=self.type)


def promotions_of(rules: Sequence[PromoteRule]) -> Promotions:
    """Return the promoted columns by table. Raises `InvalidSetting`."""
    promotions: dict[str, tuple[PromotedColumn, ...]] = {}
    for rule in rules:
        before = promotions.get(rule.table, ())
        _check(rule, before)
        promotions[rule.table] = (*before, rule.promoted)
    for table, columns in promotions.items():
        if len(columns) > PROMOTED_MAX:
            raise InvalidSetting(
                f"promote has {len(columns)} attributes of {table}; at most {PROMOTED_MAX} are "
                "allowed: keep those that many queries filter or group by, the maps have the "
                "others",
                "promote",
            )
    return promotions


def _check(rule: PromoteRule, before: Sequence[PromotedColumn]) -> None:
    column = rule.promoted
    where = f"promote, attribute {rule.key!r} of {rule.table}"
    if not _is_key(rule.key):
        raise InvalidSetting(
            f"promote has a key of {rule.table} that is empty, not Unicode, or longer than "
            f"{KEY_LENGTH_MAX} bytes",
            "promote",
        )
    if NAME.fullmatch(column.name) is None:
        raise InvalidSetting(
            f"{where}: {column.name!r} cannot be the name of a column; set column to a name of at "
            "most 100 lower-case letters, digits and _ that begins with a letter",
            "promote",
        )
    if column.name in TAKEN[rule.table]:
        raise InvalidSetting(
            f"{where}: {rule.table} has a column {column.name} already; remove this rule if it is "
            f'the same attribute, or set column to another name, such as "attr_{column.name}"',
            "promote",
        )
    for other in before:
        if (other.of, other.key) == (column.of, column.key):
            raise InvalidSetting(f"{where}: it is promoted twice; remove one rule", "promote")
        if other.name == column.name:
            raise InvalidSetting(
                f"{where}: the {other.of} attribute {other.key!r} has the column {column.name} "
                "already; set column to another name",
                "promote",
            )


def _is_key(key: str) -> bool:
    try:
        return 1 <= len(key.encode()) <= KEY_LENGTH_MAX
    except UnicodeEncodeError:
        return False
