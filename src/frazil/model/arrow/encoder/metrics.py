"""Encode data points and their metrics."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from frazil.model.arrow.encoder import fields
from frazil.model.arrow.encoder.attributes import ValueLocation, key_values, map_sizes
from frazil.model.arrow.encoder.common import level_of
from frazil.model.arrow.encoder.grouping import MessageLevel, changes
from frazil.model.arrow.encoder.protobuf import (
    Message,
    inside,
    joined,
    of_column,
    together,
    varints,
)
from frazil.model.arrow.encoder.rows import Cells, EncoderRows
from frazil.model.arrow.encoder.spans import repeated, sizes_within
from frazil.model.arrow.encoder.value_types import LevelTypes, ValueTypes
from frazil.model.protobuf.memory import Words

METRIC = (
    "metric_name",
    "metric_type",
    "description",
    "unit",
    "aggregation_temporality",
    "is_monotonic",
    "metadata",
)
"""Columns of a metric."""
POINT = (
    "time_unix_nano",
    "start_time_unix_nano",
    "value_double",
    "value_int",
    "count",
    "sum",
    "min",
    "max",
    "bucket_counts",
    "explicit_bounds",
    "scale",
    "zero_count",
    "zero_threshold",
    "positive_offset",
    "positive_bucket_counts",
    "negative_offset",
    "negative_bucket_counts",
    "quantiles",
    "flags",
    "attributes",
    "exemplars",
)
"""Columns of a data point."""
TYPES = ("gauge", "sum", "histogram", "exponential_histogram", "summary")
SUM = TYPES.index("sum")
FIELDS = np.array([5, 7, 9, 10, 11])
"""Field of a metric, by type."""
HAS_TEMPORALITY = np.array([False, True, True, True, False])
TEMPORALITIES = ("UNSPECIFIED", "DELTA", "CUMULATIVE")
METADATA_DEPTH, ATTRIBUTE_DEPTH, EXEMPLAR_DEPTH = 5, 7, 8
"""Nesting depth of messages, from the request to a value."""


def metric_levels(rows: EncoderRows, types: ValueTypes, above: MessageLevel) -> list[MessageLevel]:
    """Return the metrics, and the gauge, sum, ... inside each; innermost first."""
    part = types.parts[2]
    is_new = changes(rows, METRIC, part, above.is_new)
    starts = np.flatnonzero(is_new)
    own, part = rows.take(starts), part.take(starts)
    metadata = own["metadata"]
    (words,) = part.spread(map_sizes(metadata))
    kinds = _kinds(own)
    temporality = fields.word_numbers(own["aggregation_temporality"], TEMPORALITIES)
    monotonic = own["is_monotonic"].numbers().astype(np.int64)
    data = together(
        varints(2, np.where(HAS_TEMPORALITY[kinds], temporality, 0)),
        varints(3, np.where(kinds == SUM, monotonic, 0)),
    )
    metric = level_of(
        is_new,
        2,
        fields.text(1, own["metric_name"]),
        fields.text(2, own["description"]),
        fields.text(3, own["unit"]),
        key_values(12, metadata, words, ValueLocation(words=types.words, depth=METADATA_DEPTH)),
    )
    return [MessageLevel(is_new=is_new, heads=joined(data), fields=FIELDS[kinds]), metric]


def points(rows: EncoderRows, types: ValueTypes) -> Message:
    """Return data points of all types."""
    kinds = _kinds(rows)
    part = types.parts[-1]
    order = np.empty(len(kinds), np.int64)
    columns = []
    count = 0
    for kind in np.flatnonzero(np.bincount(kinds)):
        indices = np.flatnonzero(kinds == kind)
        points_of_kind = _Points(
            rows=rows.take(indices), part=part.take(indices), vocabulary=types.words
        )
        columns.append(joined(WRITERS[kind](points_of_kind)))
        order[indices] = np.arange(count, count + len(indices))
        count += len(indices)
    return of_column(pa.concat_arrays(columns).take(pa.array(order)))


def _kinds(rows: EncoderRows) -> Words:
    cells = rows["metric_type"]
    is_known = pc.is_in(cells.array, pa.array(TYPES))
    cells.check(np.asarray(is_known), f"is not one of {', '.join(TYPES)}")
    return fields.word_numbers(cells, TYPES)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Points:
    """Data points of one type, with the fields that all types share."""

    rows: EncoderRows
    part: LevelTypes
    vocabulary: list[str]

    def shared(self, attributes_field: int, flags_field: int, exemplars_field: int) -> Message:
        """Encode times, attributes, flags and exemplars."""
        attributes = self.rows["attributes"]
        offsets, exemplars = self.rows["exemplars"].items()
        sizes = sizes_within(offsets, exemplars.member("filtered_attributes"))
        words, inner_words = self.part.spread(map_sizes(attributes), sizes)
        location = ValueLocation(words=self.vocabulary, depth=ATTRIBUTE_DEPTH)
        inner = ValueLocation(words=self.vocabulary, depth=EXEMPLAR_DEPTH)
        return together(
            fields.unsigned(2, self.rows["start_time_unix_nano"]),
            fields.unsigned(3, self.rows["time_unix_nano"]),
            key_values(attributes_field, attributes, words, location),
            fields.flags(flags_field, self.rows["flags"]),
            repeated(exemplars_field, offsets, _exemplars(exemplars, inner_words, inner)),
        )


def _numbers(points: _Points) -> Message:
    rows = points.rows
    return together(
        points.shared(7, 8, 5),
        fields.choice(4, rows["value_double"], 6, rows["value_int"]),
    )


def _histograms(points: _Points) -> Message:
    rows = points.rows
    return together(
        points.shared(9, 10, 8),
        fields.unsigned(4, rows["count"]),
        fields.optional_double(5, rows["sum"]),
        fields.counts(6, rows["bucket_counts"]),
        fields.doubles(7, rows["explicit_bounds"]),
        fields.optional_double(11, rows["min"]),
        fields.optional_double(12, rows["max"]),
    )


def _exponential_histograms(points: _Points) -> Message:
    rows = points.rows
    return together(
        points.shared(1, 10, 11),
        fields.unsigned(4, rows["count"]),
        fields.optional_double(5, rows["sum"]),
        fields.signed(6, rows["scale"]),
        fields.unsigned(7, rows["zero_count"]),
        _buckets(8, rows["positive_offset"], rows["positive_bucket_counts"]),
        _buckets(9, rows["negative_offset"], rows["negative_bucket_counts"]),
        fields.optional_double(12, rows["min"]),
        fields.optional_double(13, rows["max"]),
        fields.double(14, rows["zero_threshold"]),
    )


def _summaries(points: _Points) -> Message:
    rows = points.rows
    exemplars = rows["exemplars"]
    offsets, _ = exemplars.items()
    exemplars.check(np.diff(offsets) == 0, "is in a summary, which has no exemplars")
    return together(
        points.shared(7, 8, 9),
        fields.unsigned(4, rows["count"]),
        fields.double(5, rows["sum"]),
        _quantiles(6, rows["quantiles"]),
    )


WRITERS = (_numbers, _numbers, _histograms, _exponential_histograms, _summaries)
"""By type."""


def _buckets(field: int, offset: Cells, bucket_counts: Cells) -> Message:
    """Encode the buckets of one side, if they were sent."""
    is_sent = offset.present()
    offset.check(is_sent == bucket_counts.present(), f"does not fit {bucket_counts.name}")
    content = together(fields.signed(1, offset.filled()), fields.count_varints(2, bucket_counts))
    return inside(field, content, is_sent)


def _quantiles(field: int, cells: Cells) -> Message:
    offsets, items = cells.given().items()
    content = together(
        fields.double(1, items.member("quantile")), fields.double(2, items.member("value"))
    )
    return repeated(field, offsets, content)


def _exemplars(exemplars: Cells, words: Words | None, location: ValueLocation) -> Message:
    return together(
        fields.unsigned(2, exemplars.member("time_unix_nano")),
        fields.choice(3, exemplars.member("value_double"), 6, exemplars.member("value_int")),
        fields.span_id(4, exemplars.member("span_id").given()),
        fields.trace_id(5, exemplars.member("trace_id").given()),
        key_values(7, exemplars.member("filtered_attributes"), words, location),
    )
