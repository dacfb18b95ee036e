"""PartReader: reads the points of one kind of values, such as the buckets of histograms.

A row comes with the hash of its labels instead of the labels. Labels are read once per series, from
the time when the series was first seen, and kept.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa

from frazil.errors import TooLarge
from frazil.languages.prometheus.directory import time_condition
from frazil.languages.prometheus.families import FoundSeries, SeriesPart
from frazil.languages.prometheus.kernels import Floats, Ints, Longs, number_ids
from frazil.languages.prometheus.labels import (
    INSTANCE_LABEL,
    JOB_LABEL,
    MAPS,
    TARGET_MAPS,
    KnownLabels,
    SeriesLabels,
    load_labels,
    with_label,
)
from frazil.languages.prometheus.matching import SeriesFilter
from frazil.languages.prometheus.names import NAME
from frazil.languages.prometheus.native_points import HISTOGRAM_COLUMNS, SCALE_MIN, histograms_of
from frazil.languages.prometheus.point_groups import STALE_NAN_BITS, PointGroup
from frazil.languages.prometheus.spread_points import (
    SpreadPoints,
    bound_text,
    spread_buckets,
    spread_quantiles,
    spread_times,
)
from frazil.languages.promql.points import LabelMatcher, LabelSet
from frazil.query import Ask
from frazil.query import sql_text as text
from frazil.query import sql_texts as texts

US_PER_MS = 1000
BATCH_RANK = 1 << 20
"""More than a request has points: ranks follow the order of the log."""
_COLUMNS = {
    SeriesPart.VALUE: ("coalesce(value_double, CAST(value_int AS DOUBLE), 0.0)", ""),
    SeriesPart.COUNT: ("CAST(count AS DOUBLE)", ""),
    SeriesPart.SUM: ("sum", ""),
    SeriesPart.BUCKETS: ("CAST(count AS DOUBLE)", ", bucket_counts, explicit_bounds"),
    SeriesPart.QUANTILES: ("0.0", ", quantiles"),
    SeriesPart.HISTOGRAM: ("CAST(count AS DOUBLE)", f", {', '.join(HISTOGRAM_COLUMNS)}"),
}
"""SQL of the value, and other columns."""
_LISTS = {
    SeriesPart.BUCKETS: ("bucket_counts", "explicit_bounds"),
    SeriesPart.QUANTILES: ("quantiles",),
    SeriesPart.HISTOGRAM: (),
}
"""Columns with what tells the series of a row apart."""
_SLICE_ROWS = {
    SeriesPart.VALUE: 500_000,
    SeriesPart.COUNT: 500_000,
    SeriesPart.SUM: 500_000,
    SeriesPart.BUCKETS: 50_000,
    SeriesPart.QUANTILES: 50_000,
    SeriesPart.HISTOGRAM: 25_000,
}
"""Rows of one read: fewer where a row is long."""
SLICES_MAX = 10
"""Reads of one selector: what it selects is in memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartSelection:
    """What to read: series with the same kind of values, in (after_ms, until_ms]."""

    part: SeriesPart
    found: tuple[FoundSeries, ...]
    matchers: tuple[LabelMatcher, ...]
    after_ms: int
    until_ms: int

    @property
    def is_target(self) -> bool:
        return self.part is SeriesPart.RESOURCE

    def conditions(self, after_ms: int, until_ms: int) -> str:
        """SQL of the rows, and maybe more: those of other metrics with the same names."""
        names = sorted({series.family.metric_name for series in self.found})
        conditions = [time_condition(after_ms, until_ms), *self._pushed()]
        if not self.is_target:
            conditions.append(f"metric_name IN ({texts(names)})")
        if len(self.found) == 1 and not self.is_target:
            conditions.append(self.found[0].family.condition)
        if self.part is SeriesPart.SUM:
            conditions.append("sum IS NOT NULL")
        if self.part is SeriesPart.HISTOGRAM:
            conditions.append(f"scale >= {SCALE_MIN}")
        return " AND ".join(conditions)

    def kind(self) -> str:
        """SQL of the place of a row's series in `found`; null if it is none of them."""
        if len(self.found) == 1:
            return "0"
        cases = " ".join(
            f"WHEN {series.family.condition} THEN {place}"
            for place, series in enumerate(self.found)
        )
        return f"CASE {cases} END"

    def _pushed(self) -> list[str]:
        """Conditions on columns that the selector implies."""
        conditions = []
        for matcher in self.matchers:
            if matcher.operator != "=" or not matcher.value:
                continue
            if matcher.name == JOB_LABEL:
                parts = matcher.value.split("/")
                names = ["/".join(parts[begin:]) for begin in range(len(parts))]
                conditions.append(f"service_name IN ({texts(names)})")
            if matcher.name == INSTANCE_LABEL:
                conditions.append(f"service_instance_id = {text(matcher.value)}")
        return conditions


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rows:
    """Rows as they were read, in columns."""

    table: pa.Table
    hashes: pa.FixedSizeBinaryArray
    ids: Longs
    """The hash, with the kind and the temporality."""
    kinds: Ints
    is_delta: np.ndarray
    times_ms: Longs
    ranks: Longs
    values: Floats

    @classmethod
    def of(cls, table: pa.Table) -> _Rows:
        hashes = _one(table["id"])
        words = np.frombuffer(hashes.buffers()[1] or b"", np.int64).reshape(-1, 2)
        ids = words[hashes.offset : hashes.offset + len(hashes)].copy()
        kinds = _one(table["kind"]).to_numpy().astype(np.int32)
        is_delta = _one(table["is_delta"]).to_numpy(zero_copy_only=False)
        ids[:, 1] += 2 * kinds.astype(np.int64) + is_delta
        value = _one(table["value"])
        values = np.array(value.fill_null(0.0), np.float64)
        values.view(np.uint64)[np.asarray(value.is_null())] = STALE_NAN_BITS
        return cls(
            table=table,
            hashes=hashes,
            ids=ids,
            kinds=kinds,
            is_delta=is_delta,
            times_ms=_one(table["time"].cast(pa.int64())).to_numpy() // US_PER_MS,
            ranks=_one(table["rank"]).to_numpy(),
            values=values,
        )


def _one(column: pa.ChunkedArray) -> pa.Array:
    """Return a column as one array."""
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)


class PartReader:
    """Reads for one evaluation."""

    def __init__(self, ask: Ask, known: KnownLabels, check: Callable[[], None]) -> None:
        self._ask = ask
        self._known = known
        self._check = check

    def read(self, selection: PartSelection) -> PointGroup:
        """Read the points."""
        is_target = selection.is_target
        return self._group(
            selection, self._ask(_target_sql(selection)) if is_target else self._table(selection)
        )

    def labels(self, selection: PartSelection) -> list[LabelSet]:
        """Read the labels of the series alone."""
        group = self._group(selection, self._ask(_series_sql(selection)))
        return [labels for labels in group.labels if labels is not None]

    def _group(self, selection: PartSelection, table: pa.Table) -> PointGroup:
        rows = _Rows.of(table)
        numbers = np.empty(len(rows.ids), np.int32)
        firsts = number_ids(rows.ids, numbers)
        self._check()
        labels = self._labels(selection, rows, numbers, firsts)
        spread = _spread(selection.part, rows)
        if spread is None:
            return _plain_group(selection, rows, numbers, firsts, labels)
        return _spread_group(selection, rows, numbers, labels, spread)

    def _table(self, selection: PartSelection) -> pa.Table:
        """Read the rows, in slices of time if they are many."""
        rows_max = _SLICE_ROWS[selection.part]
        after_ms, until_ms, slices = selection.after_ms, selection.until_ms, 1
        if sum(series.family.point_count for series in selection.found) > rows_max:
            after_ms, until_ms, slices = self._slices(selection, rows_max)
        edges = np.linspace(after_ms, until_ms, slices + 1).astype(np.int64).tolist()
        tables = []
        for after, until in pairwise(edges):
            self._check()
            tables.append(self._ask(_points_sql(selection, after, until)))
        return pa.concat_tables(tables)

    def _slices(self, selection: PartSelection, rows_max: int) -> tuple[int, int, int]:
        """Return the time that has points, and into how many slices to cut it."""
        where = selection.conditions(selection.after_ms, selection.until_ms)
        counted = self._ask(
            "SELECT count(*) AS count, min(time) AS oldest, max(time) AS newest "
            f"FROM metrics WHERE {where}"
        )
        count = counted["count"][0].as_py()
        if count > SLICES_MAX * rows_max:
            raise TooLarge(
                f"a selector reads {count} points of {selection.part.value}, more than the limit "
                f"of {SLICES_MAX * rows_max}; shorten the range, or name a job"
            )
        if not count:
            return selection.after_ms, selection.until_ms, 1
        oldest, newest = (
            counted[name].cast(pa.int64())[0].as_py() // US_PER_MS for name in ("oldest", "newest")
        )
        return oldest - 1, newest, math.ceil(count / rows_max)

    def _labels(
        self, selection: PartSelection, rows: _Rows, numbers: Ints, firsts: Longs
    ) -> list[LabelSet | None]:
        """Return the labels by number, with the name; None for a series that is not shown."""
        begins = np.full(len(firsts), np.iinfo(np.int64).max, np.int64)
        np.minimum.at(begins, numbers, rows.times_ms)

        def load(missing: list[int]) -> Mapping[bytes, SeriesLabels | None]:
            first, last = int(begins[missing].min()), int(begins[missing].max())
            where = selection.conditions(first - 1, last)
            return load_labels(self._ask, where, is_target=selection.is_target)

        known = self._known.of(rows.hashes.take(pa.array(firsts)).to_pylist(), load)
        found = [selection.found[kind] for kind in rows.kinds[firsts].tolist()]
        return [_named(each, labels) for each, labels in zip(found, known, strict=True)]


def _named(found: FoundSeries, labels: SeriesLabels | None) -> LabelSet | None:
    if labels is None:
        return None
    return with_label(labels.original if found.keeps_labels else labels.escaped, NAME, found.name)


def _points_sql(selection: PartSelection, after_ms: int, until_ms: int) -> str:
    value, more = _COLUMNS[selection.part]
    rows = (
        f"SELECT hash_maps({MAPS}) AS id, {selection.kind()} AS kind, time, "
        "coalesce(aggregation_temporality = 'DELTA', false) AS is_delta, "
        f"_offset * {BATCH_RANK} + _row AS rank, "
        f"CASE WHEN (flags & 1) = 1 THEN NULL ELSE {value} END AS value{more} "
        f"FROM metrics WHERE {selection.conditions(after_ms, until_ms)}"
    )
    return rows if len(selection.found) == 1 else f"SELECT * FROM ({rows}) WHERE kind IS NOT NULL"


def _series_sql(selection: PartSelection) -> str:
    """SQL of one point of each series."""
    where = selection.conditions(selection.after_ms, selection.until_ms)
    maps = TARGET_MAPS if selection.is_target else MAPS
    columns = _LISTS.get(selection.part, ())
    rows = (
        f"SELECT hash_maps({maps}) AS id, {selection.kind()} AS kind, time"
        f"{''.join(f', {name}' for name in columns)} FROM metrics WHERE {where}"
    )
    more = "".join(f", first_value({name}) AS {name}" for name in columns)
    more += ", max(time) AS newest" if selection.is_target else ""
    return (
        "SELECT id, kind, min(time) AS time, false AS is_delta, 0 AS rank, 0.0 AS value"
        f"{more} FROM ({rows}) WHERE kind IS NOT NULL GROUP BY id, kind"
    )


def _target_sql(selection: PartSelection) -> str:
    """SQL of the resources of each request, with the first and last time of their points."""
    where = selection.conditions(selection.after_ms, selection.until_ms)
    return (
        "SELECT id, 0 AS kind, min(time) AS time, max(time) AS newest, false AS is_delta, "
        f"request * {BATCH_RANK} AS rank, 1.0 AS value FROM (SELECT "
        f"hash_maps({TARGET_MAPS}) AS id, time, _log_partition, _offset AS request "
        f"FROM metrics WHERE {where}) GROUP BY id, _log_partition, request"
    )


def _spread(part: SeriesPart, rows: _Rows) -> SpreadPoints | None:
    """Return the points of rows that have several."""
    table = rows.table
    if part is SeriesPart.BUCKETS:
        return spread_buckets(
            _one(table["bucket_counts"]), _one(table["explicit_bounds"]), rows.values
        )
    if part is SeriesPart.QUANTILES:
        return spread_quantiles(_one(table["quantiles"]), rows.values)
    if part is SeriesPart.RESOURCE:
        newest = _one(table["newest"].cast(pa.int64())).to_numpy() // US_PER_MS
        return spread_times(rows.times_ms, newest)
    return None


def _plain_group(
    selection: PartSelection,
    rows: _Rows,
    numbers: Ints,
    firsts: Longs,
    labels: Sequence[LabelSet | None],
) -> PointGroup:
    wanted = SeriesFilter(selection.matchers)
    is_native = "scale" in rows.table.column_names
    return PointGroup(
        labels=[each if wanted.selects(each) else None for each in labels],
        is_delta=rows.is_delta[firsts].tolist(),
        numbers=numbers,
        times_ms=rows.times_ms,
        ranks=rows.ranks,
        values=rows.values,
        histograms=histograms_of(rows.table) if is_native else None,
    )


def _spread_group(
    selection: PartSelection,
    rows: _Rows,
    numbers: Ints,
    labels: Sequence[LabelSet | None],
    spread: SpreadPoints,
) -> PointGroup:
    """Return the points of rows that have several, each a series of its own by the label that tells
    them apart."""
    wanted = SeriesFilter(selection.matchers)
    ids = np.column_stack([numbers[spread.rows], spread.bounds.view(np.int64)])
    point_numbers = np.empty(len(ids), np.int32)
    firsts = number_ids(ids, point_numbers)
    added = []
    for first, bound in zip(firsts.tolist(), spread.bounds[firsts].tolist(), strict=True):
        base = labels[numbers[spread.rows[first]]]
        if base is not None and spread.label is not None:
            base = with_label(base, spread.label, bound_text(bound))
        added.append(base if wanted.selects(base) else None)
    return PointGroup(
        labels=added,
        is_delta=rows.is_delta[spread.rows[firsts]].tolist(),
        numbers=point_numbers,
        times_ms=rows.times_ms[spread.rows] if spread.times_ms is None else spread.times_ms,
        ranks=rows.ranks[spread.rows],
        values=rows.values[spread.rows] if spread.values is None else spread.values,
    )
