"""Columns that only `metrics` has: data points of all kinds in one wide table.

Columns that a kind lacks are null. Nodes of different kinds have different widths, so a slot is
read only in rows of the kinds that have it.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from frazil.model.arrow.decoder.arrays import (
    array_of,
    bool_array,
    int32_of,
    list_array,
    struct_list,
    word_array,
)
from frazil.model.arrow.decoder.buffers import build_lists, build_numbers
from frazil.model.arrow.decoder.columns import NodeLevel
from frazil.model.arrow.decoder.dispatch import SLOTS
from frazil.model.arrow.decoder.fields import (
    AS_DOUBLE,
    AS_INT,
    EXPONENTIAL,
    GAUGE,
    HISTOGRAM,
    SUM,
    SUMMARY,
)
from frazil.model.arrow.decoder.promoted import Columns, promoted_columns
from frazil.model.arrow.decoder.values.value_types import Values
from frazil.model.arrow.schemas import DOUBLE, EXEMPLARS, INT, LONG, METRICS, QUANTILES
from frazil.model.protobuf.memory import Bools, Words

TYPES = {
    GAUGE: "gauge",
    SUM: "sum",
    HISTOGRAM: "histogram",
    EXPONENTIAL: "exponential_histogram",
    SUMMARY: "summary",
}
TYPE_WORDS = tuple(TYPES.values())
TYPE_CODES = np.zeros(max(TYPES) + 1, np.int64)
for _code, _type in enumerate(TYPES):
    TYPE_CODES[_type] = _code
TEMPORALITIES = ("UNSPECIFIED", "DELTA", "CUMULATIVE")


def metric_columns(points: NodeLevel, metrics: NodeLevel, columns: Columns) -> dict[str, pa.Array]:
    """Return column -> array for data points."""
    kinds = metrics.words("data")
    is_number = (kinds == GAUGE) | (kinds == SUM)
    metadata = metrics.maps("metadata")
    metrics.set_types(metadata)
    attributes = points.maps("attributes")
    exemplars, exemplar_values = _exemplars(points)
    points.set_types(attributes, exemplar_values)
    return {
        "metric_name": metrics.text("name"),
        "metric_type": word_array(TYPE_CODES[kinds], TYPE_WORDS),
        "description": metrics.text("description", is_optional=True),
        "unit": metrics.text("unit", is_optional=True),
        "start_time_unix_nano": array_of(LONG, points.words("start_time_unix_nano")),
        **_value_columns(points, is_number),
        **_histogram_columns(points, kinds),
        **_exponential_columns(points, kinds == EXPONENTIAL),
        "quantiles": _quantiles(points, kinds == SUMMARY),
        "aggregation_temporality": _temporality(metrics, kinds),
        "is_monotonic": bool_array(metrics.words("data", 2) != 0, kinds == SUM),
        "flags": points.bits("flags"),
        "attributes": points.record_map_of(attributes),
        "metadata": metrics.map_of(metadata),
        "exemplars": exemplars,
        **promoted_columns(points, attributes, columns, "record"),
    }


def _value_columns(level: NodeLevel, rows: Bools) -> dict[str, pa.Array]:
    """Return the columns of a double or an int."""
    chosen, values = _at(level, "value", rows), _at(level, "value", rows, 1)
    return {
        "value_double": array_of(DOUBLE, values, chosen == AS_DOUBLE),
        "value_int": array_of(LONG, values, chosen == AS_INT),
    }


def _histogram_columns(points: NodeLevel, kinds: Words) -> dict[str, pa.Array]:
    """Return the columns that all histograms have, and those with explicit bounds."""
    is_histogram, is_summary = kinds == HISTOGRAM, kinds == SUMMARY
    is_either = is_histogram | (kinds == EXPONENTIAL)
    is_counted = is_either | is_summary
    columns = {"count": array_of(LONG, _at(points, "count", is_counted), is_counted)}
    has_sum = is_summary | (_at(points, "sum", is_either) != 0)
    columns["sum"] = array_of(DOUBLE, _at(points, "sum", is_counted, 1), has_sum)
    for name in ("min", "max"):
        is_sent = _at(points, name, is_either) != 0
        columns[name] = array_of(DOUBLE, _at(points, name, is_either, 1), is_sent)
    slots = points.slots
    for name, kind in (("bucket_counts", LONG), ("explicit_bounds", DOUBLE)):
        columns[name] = _numbers(points, name, kind, is_histogram, slots[name], is_varint=False)
    return columns


def _exponential_columns(points: NodeLevel, rows: Bools) -> dict[str, pa.Array]:
    columns = {
        "scale": array_of(INT, int32_of(_at(points, "scale", rows)), rows),
        "zero_count": array_of(LONG, _at(points, "zero_count", rows), rows),
        "zero_threshold": array_of(DOUBLE, _at(points, "zero_threshold", rows), rows),
    }
    for side in ("positive", "negative"):
        is_sent = _at(points, side, rows) != 0
        offset = int32_of(_at(points, side, rows, 1))
        columns[f"{side}_offset"] = array_of(INT, offset, is_sent)
        name = f"{side}_bucket_counts"
        slot = points.slots[side] + 2
        columns[name] = _numbers(points, name, LONG, is_sent, slot, is_varint=True)
    return columns


def _at(level: NodeLevel, place: str, rows: Bools, after: int = 0) -> Words:
    """Return the words at a place, 0 in other rows."""
    words = np.zeros(len(rows), np.int64)
    words[rows] = level.arena.words[level.nodes[rows] + (level.slots[place] + after)]
    return words


def _numbers(
    points: NodeLevel, column: str, kind: pa.DataType, rows: Bools, slot: int, *, is_varint: bool
) -> pa.Array:
    # Node 0 is empty at every slot.
    nodes = np.where(rows, points.nodes, 0)
    points.arena.spend(8 * int(points.arena.words[nodes + (slot + 2)].sum()))
    offsets, numbers = build_numbers(points.arena.words, nodes, slot, is_varint)
    inner = array_of(kind, numbers)
    return list_array(METRICS.field(column).type, offsets, inner, rows)


def _quantiles(points: NodeLevel, rows: Bools) -> pa.Array:
    nodes = np.where(rows, points.nodes, 0)
    offsets, inner = build_lists(points.arena.words, nodes, points.slots["quantiles"])
    quantiles = NodeLevel(points.arena, SLOTS["quantile"], inner)
    columns = {
        "quantile": array_of(DOUBLE, quantiles.words("quantile")),
        "value": array_of(DOUBLE, quantiles.words("value")),
    }
    return struct_list(QUANTILES, offsets, columns, rows)


def _temporality(metrics: NodeLevel, kinds: Words) -> pa.Array:
    has_temporality = (kinds == SUM) | (kinds == HISTOGRAM) | (kinds == EXPONENTIAL)
    return word_array(metrics.words("data", 1), TEMPORALITIES, has_temporality)


def _exemplars(points: NodeLevel) -> tuple[pa.Array, Values]:
    """Return the column, and the attributes of each point's exemplars."""
    offsets, exemplars = points.inner("exemplars", SLOTS["exemplar"])
    attributes = exemplars.maps("filtered_attributes")
    columns = {
        "time_unix_nano": array_of(LONG, exemplars.words("time_unix_nano")),
        **_value_columns(exemplars, np.ones(len(exemplars.nodes), np.bool_)),
        "trace_id": exemplars.hex("trace_id"),
        "span_id": exemplars.hex("span_id"),
        "filtered_attributes": exemplars.map_of(attributes),
    }
    return struct_list(EXEMPLARS, offsets, columns), attributes.within(offsets)
