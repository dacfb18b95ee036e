"""Increases of counters and histograms in each step, computed from their points.

SQL collects the points by stream, so that labels are read once per stream; the increases are
computed here. See metric_series.py for the meaning of the values.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from frazil.errors import TooLarge
from frazil.query.search.filters import Ask
from frazil.query.telemetry.counter_resets import (
    NONE,
    Floats,
    Increments,
    Integers,
    Points,
    increments_of,
)
from frazil.query.telemetry.histograms import (
    Buckets,
    ExponentialHistograms,
    explicit_buckets,
    exponential_buckets,
    quantile_of,
)

US_PER_S = 1_000_000
Row = tuple[tuple[str | None, ...], int, float]
"""Labels, start of the step in microseconds, value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RateQuery:
    """A query of a metric, in the units of the table."""

    aggregate: str
    share: float  # the quantile
    step_us: int
    since_us: int
    read_us: int  # start of the points read, before `since_us`
    labels: tuple[str, ...]  # SQL
    is_newest: bool  # return the newest points, not increases


CELLS_MAX = 500_000
"""Labels times steps of one result."""
QUANTILES_MAX = 50_000
"""Quantiles of one result."""
SERIES = "attributes, resource_attributes, scope_name, scope_version, scope_attributes, unit"
"""Columns that identify a series of a metric."""
NUMBERS = ("gauge", "sum")
VALUE = "coalesce(value_double, CAST(value_int AS DOUBLE))"
_VALUES = {
    "gauge": {"total": VALUE},
    "sum": {"total": VALUE},
    "histogram": {"total": "CAST(count AS DOUBLE)", "sum": "sum"},
    "exponential_histogram": {"total": "CAST(count AS DOUBLE)", "sum": "sum"},
    "summary": {"total": "CAST(count AS DOUBLE)", "sum": "sum"},
}
_BUCKETS = {
    "histogram": ("bucket_counts",),
    "exponential_histogram": (
        "scale",
        "zero_count",
        "zero_threshold",
        "positive_offset",
        "positive_bucket_counts",
        "negative_offset",
        "negative_bucket_counts",
    ),
    "summary": ("quantiles",),
}
"""Columns needed for quantiles."""


def rate_rows(ask: Ask, metric_type: str, query: RateQuery, matching: str) -> list[Row]:
    """Return the values of all steps. `matching` is the WHERE clause."""
    if metric_type in NUMBERS:
        matching += f" AND NOT isnan({_VALUES[metric_type]['total']})"
    streams = ask(_gather(metric_type, query, matching))
    if not streams.num_rows:
        return []
    points, columns, grid = _grid_of(streams, query)
    if query.aggregate != "quantile":
        return grid.rows(_totals(grid, points, columns, query, metric_type))
    if metric_type == "summary":
        return grid.rows(_sent_quantiles(grid, columns["quantiles"], query.share))
    if metric_type == "histogram":
        buckets = explicit_buckets(
            columns["bucket_counts"], _bounds(streams), points.stream, grid.increments, grid.cell
        )
    else:
        buckets = exponential_buckets(_exponential(columns), grid.increments, grid.cell)
    return grid.rows(_quantiles(buckets, query.share, grid.cell_count))


def bucket_steps(
    ask: Ask, metric_type: str, query: RateQuery, matching: str
) -> tuple[Integers, Buckets]:
    """Return the increases of all buckets, and the start of the step of each in microseconds. For
    quantile queries without labels. Outer buckets are infinite."""
    streams = ask(_gather(metric_type, query, matching))
    if not streams.num_rows:
        none = np.empty(0, np.float64)
        steps = np.empty(0, np.int64)
        return steps, Buckets(cell=steps, low=none, high=none, count=none)
    points, columns, grid = _grid_of(streams, query)
    if metric_type == "histogram":
        buckets = explicit_buckets(
            columns["bucket_counts"],
            _bounds(streams),
            points.stream,
            grid.increments,
            grid.cell,
            is_open=True,
        )
    else:
        buckets = exponential_buckets(_exponential(columns), grid.increments, grid.cell)
    return (grid.first_step + buckets.cell) * grid.step_us, buckets


def _bounds(streams: pa.Table) -> list[list[float]]:
    return [edges or [] for edges in streams["bounds"].to_pylist()]


def _grid_of(streams: pa.Table, query: RateQuery) -> tuple[Points, dict[str, pa.Array], _Grid]:
    lists = pc.list_flatten(streams["points"]).combine_chunks()
    columns = dict(zip(lists.type.names, lists.flatten(), strict=True))
    points = _points(streams, columns)
    find = _newest if query.is_newest else _increases
    return points, columns, _Grid.over(streams, points, find(streams, points, query), query)


def _gather(metric_type: str, query: RateQuery, matching: str) -> str:
    """SQL for one row per stream with its points as a list. Deltas ignore the start time, as they
    are not compared. Changed bounds start another stream."""
    # The newest point of a series does not depend on the start of its sender; increases do.
    start = "0" if query.is_newest else "start_time_unix_nano"
    fields = {"time": "time", "offset": "_offset", "row": "_row", **_VALUES[metric_type]}
    keys = {
        "start_ns": f"CASE WHEN aggregation_temporality = 'DELTA' THEN 0 ELSE {start} END",
        "is_delta": "coalesce(aggregation_temporality = 'DELTA', false)",
    }
    if query.aggregate == "quantile":
        fields |= {name: name for name in _BUCKETS[metric_type]}
        if metric_type == "histogram":
            keys["bounds"] = "explicit_bounds"
    labels = {f"l{index}": label for index, label in enumerate(query.labels)}
    selected = [f"{sql} AS {name}" for name, sql in {**labels, **keys}.items()]
    struct = ", ".join(f"'{name}', {sql}" for name, sql in fields.items())
    grouped = [str(index + 1) for index in range(len(selected))]
    return (
        f"SELECT {', '.join(selected)}, array_agg(named_struct({struct})) AS points "
        f"FROM metrics {matching} GROUP BY {', '.join(grouped)}, {SERIES}"
    )


def _increases(streams: pa.Table, points: Points, query: RateQuery) -> Increments:
    return increments_of(
        points,
        start_ns=streams["start_ns"].to_numpy(),
        is_delta=streams["is_delta"].to_numpy(),
        read_us=query.read_us,
    )


def _newest(_: pa.Table, points: Points, query: RateQuery) -> Increments:
    """The newest point of each stream in each step."""
    order = np.lexsort((points.row, points.offset, points.time_us, points.stream))
    stream, step = points.stream[order], points.time_us[order] // query.step_us
    is_last = np.ones(len(order), np.bool_)
    is_last[:-1] = (stream[1:] != stream[:-1]) | (step[1:] != step[:-1])
    later = order[is_last]
    return Increments(later=later, earlier=np.full(len(later), NONE, np.int64))


def _points(streams: pa.Table, columns: dict[str, pa.Array]) -> Points:
    lengths = pc.list_value_length(streams["points"]).to_numpy()
    return Points(
        stream=np.repeat(np.arange(streams.num_rows), lengths),
        time_us=columns["time"].cast(pa.int64()).to_numpy(zero_copy_only=False),
        offset=columns["offset"].to_numpy(zero_copy_only=False),
        row=columns["row"].to_numpy(zero_copy_only=False).astype(np.int64),
        total=_floats(columns["total"]),
    )


def _floats(column: pa.Array, missing: float = np.nan) -> Floats:
    return np.asarray(column.cast(pa.float64()).fill_null(missing), np.float64)


def _integers(column: pa.Array) -> Integers:
    return np.asarray(column.fill_null(0).cast(pa.int64()), np.int64)


def _exponential(columns: dict[str, pa.Array]) -> ExponentialHistograms:
    return ExponentialHistograms(
        scale=_integers(columns["scale"]),
        zero_count=_floats(columns["zero_count"], 0.0),
        zero_threshold=_floats(columns["zero_threshold"], 0.0),
        positive_offset=_integers(columns["positive_offset"]),
        positive_counts=columns["positive_bucket_counts"],
        negative_offset=_integers(columns["negative_offset"]),
        negative_counts=columns["negative_bucket_counts"],
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Grid:
    """Cells of a result: labels times steps. Each increment belongs to one cell."""

    labels: list[tuple[str | None, ...]]
    increments: Increments  # within the time range
    cell: Integers
    cell_count: int
    first_step: int
    step_count: int
    step_us: int

    @classmethod
    def over(
        cls, streams: pa.Table, points: Points, increments: Increments, query: RateQuery
    ) -> _Grid:
        labels, group = _groups(streams, len(query.labels))
        is_known = ~np.isnan(increments.of(points.total))
        kept = (points.time_us[increments.later] >= query.since_us) & is_known
        later, earlier = increments.later[kept], increments.earlier[kept]
        steps = points.time_us[later] // query.step_us
        first = int(steps.min()) if len(steps) else 0
        count = int(steps.max()) - first + 1 if len(steps) else 0
        if len(labels) * count > CELLS_MAX:
            raise TooLarge(
                f"{len(labels)} series of {count} steps are more than {CELLS_MAX} values; use a "
                "longer step or fewer labels"
            )
        return cls(
            labels=labels,
            increments=Increments(later=later, earlier=earlier),
            cell=group[points.stream[later]] * count + steps - first,
            cell_count=len(labels) * count,
            first_step=first,
            step_count=count,
            step_us=query.step_us,
        )

    def rows(self, values: Floats) -> list[Row]:
        """Rows of the cells whose value is not NaN."""
        return [
            (
                self.labels[cell // self.step_count],
                (self.first_step + cell % self.step_count) * self.step_us,
                float(values[cell]),
            )
            for cell in np.flatnonzero(~np.isnan(values)).tolist()
        ]


def _groups(streams: pa.Table, count: int) -> tuple[list[tuple[str | None, ...]], Integers]:
    """Return the distinct labels and their index for each stream."""
    lists = [streams[f"l{index}"].to_pylist() for index in range(count)]
    labels = list(zip(*lists, strict=True)) if lists else [()] * streams.num_rows
    numbers: dict[tuple[str | None, ...], int] = {}
    group = np.array([numbers.setdefault(key, len(numbers)) for key in labels], np.int64)
    return list(numbers), group


def _totals(
    grid: _Grid, points: Points, columns: dict[str, pa.Array], query: RateQuery, metric_type: str
) -> Floats:
    """Aggregate the increments of each cell."""
    cell, size = grid.cell, grid.cell_count
    seen = np.bincount(cell, minlength=size) > 0
    total = _added(cell, grid.increments.of(points.total), size)
    value = total
    if query.aggregate == "rate":
        value = total / (query.step_us / US_PER_S)
    elif query.aggregate in ("sum", "avg") and metric_type not in NUMBERS:
        increase = grid.increments.of(_floats(columns["sum"]))
        value = _added(cell, increase, size)
        if query.aggregate == "avg":
            value = value / np.where(total > 0, total, np.nan)
    return np.where(seen, value, np.nan)


def _added(cell: Integers, values: Floats, size: int) -> Floats:
    return np.asarray(np.bincount(cell, weights=values, minlength=size), np.float64)


def _quantiles(buckets: Buckets, share: float, size: int) -> Floats:
    values = np.full(size, np.nan)
    order = np.argsort(buckets.cell, kind="stable")
    cells, begins = np.unique(buckets.cell[order], return_index=True)
    if len(cells) > QUANTILES_MAX:
        raise TooLarge(
            f"{len(cells)} quantiles are more than {QUANTILES_MAX}; use a longer step or fewer "
            "labels"
        )
    ends = [*begins[1:], len(order)][: len(begins)]
    for cell, begin, end in zip(cells, begins, ends, strict=True):
        rows = order[begin:end]
        value = quantile_of(buckets.low[rows], buckets.high[rows], buckets.count[rows], share)
        values[cell] = np.nan if value is None else value
    return values


def _sent_quantiles(grid: _Grid, sent: pa.Array, share: float) -> Floats:
    """Quantiles as sent by summaries; the largest of several in a cell."""
    values = np.full(grid.cell_count, np.nan)
    newest = sent.take(pa.array(grid.increments.later)).to_pylist()
    for cell, quantiles in zip(grid.cell.tolist(), newest, strict=True):
        sent_values = [q["value"] for q in quantiles or () if q["quantile"] == share]
        values[cell] = np.fmax.reduce([values[cell], *sent_values])
    return values
