"""Growth: what counters and histograms counted in each step, worked out from their points.

SQL gathers the points by stream, so that a stream's labels are read once; what counts of them is
worked out here. What the values mean: see series.py.
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
"""Labels, when the step begins in microseconds, value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RateQuery:
    """What is asked of a metric, in the units of the table."""

    aggregate: str
    share: float
    """Of a quantile."""
    step_us: int
    since_us: int
    read_us: int
    """From when on points are read: some time before `since_us`."""
    labels: tuple[str, ...]
    """As SQL."""
    is_newest: bool
    """The newest points are wanted as they are, and not how much they grew."""


CELLS_MAX = 500_000
"""Labels times steps of one answer."""
QUANTILES_MAX = 50_000
"""Of one answer: each takes some time."""
SERIES = "attributes, resource_attributes, scope_name, scope_version, scope_attributes, unit"
"""What points of one metric must have in common to belong together."""
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
"""What quantiles are made of."""


def growth(ask: Ask, metric_type: str, asked: RateQuery, fitting: str) -> list[Row]:
    """The values of all steps. `fitting` is the WHERE that points must pass."""
    if metric_type in NUMBERS:
        fitting += f" AND NOT isnan({_VALUES[metric_type]['total']})"
    streams = ask(_gather(metric_type, asked, fitting))
    if not streams.num_rows:
        return []
    lists = pc.list_flatten(streams["points"]).combine_chunks()
    columns = dict(zip(lists.type.names, lists.flatten(), strict=True))
    points = _points(streams, columns)
    found = _newest(points, asked) if asked.is_newest else _grown(streams, points, asked)
    grid = _Grid.over(streams, points, found, asked)
    if asked.aggregate != "quantile":
        return grid.rows(_totals(grid, points, columns, asked, metric_type))
    if metric_type == "summary":
        return grid.rows(_sent_quantiles(grid, columns["quantiles"], asked.share))
    if metric_type == "histogram":
        bounds = [some or [] for some in streams["bounds"].to_pylist()]
        counts = columns["bucket_counts"]
        buckets = explicit_buckets(counts, bounds, points.stream, grid.found, grid.cell)
    else:
        buckets = exponential_buckets(_exponential(columns), grid.found, grid.cell)
    return grid.rows(_quantiles(buckets, asked.share, grid.cell_count))


def _gather(metric_type: str, asked: RateQuery, fitting: str) -> str:
    """One row per stream, with all its points as a list. Deltas are told apart by nothing: they
    need not be compared. Bounds that change make another stream."""
    # The newest point of a series is wanted whenever its sender began; growth is not.
    start = "0" if asked.is_newest else "start_time_unix_nano"
    fields = {"time": "time", "offset": "_offset", "row": "_row", **_VALUES[metric_type]}
    keys = {
        "start_ns": f"CASE WHEN aggregation_temporality = 'DELTA' THEN 0 ELSE {start} END",
        "is_delta": "coalesce(aggregation_temporality = 'DELTA', false)",
    }
    if asked.aggregate == "quantile":
        fields |= {name: name for name in _BUCKETS[metric_type]}
        if metric_type == "histogram":
            keys["bounds"] = "explicit_bounds"
    labels = {f"l{place}": label for place, label in enumerate(asked.labels)}
    selected = [f"{sql} AS {name}" for name, sql in {**labels, **keys}.items()]
    struct = ", ".join(f"'{name}', {sql}" for name, sql in fields.items())
    grouped = [str(place + 1) for place in range(len(selected))]
    return (
        f"SELECT {', '.join(selected)}, array_agg(named_struct({struct})) AS points "
        f"FROM metrics {fitting} GROUP BY {', '.join(grouped)}, {SERIES}"
    )


def _grown(streams: pa.Table, points: Points, asked: RateQuery) -> Increments:
    return increments_of(
        points,
        start_ns=streams["start_ns"].to_numpy(),
        is_delta=streams["is_delta"].to_numpy(),
        read_us=asked.read_us,
    )


def _newest(points: Points, asked: RateQuery) -> Increments:
    """The newest point of each stream in each step, compared with nothing."""
    order = np.lexsort((points.row, points.offset, points.time_us, points.stream))
    stream, step = points.stream[order], points.time_us[order] // asked.step_us
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
    """The cells of an answer: labels and steps. Each increment belongs to one of them."""

    labels: list[tuple[str | None, ...]]
    found: Increments
    """Those within the time that is asked for."""
    cell: Integers
    cell_count: int
    first_step: int
    step_count: int
    step_us: int

    @classmethod
    def over(cls, streams: pa.Table, points: Points, found: Increments, asked: RateQuery) -> _Grid:
        labels, group = _groups(streams, len(asked.labels))
        kept = (points.time_us[found.later] >= asked.since_us) & ~np.isnan(found.of(points.total))
        found = Increments(later=found.later[kept], earlier=found.earlier[kept])
        steps = points.time_us[found.later] // asked.step_us
        first = int(steps.min()) if len(steps) else 0
        count = int(steps.max()) - first + 1 if len(steps) else 0
        if len(labels) * count > CELLS_MAX:
            raise TooLarge(
                f"{len(labels)} series of {count} steps are more than {CELLS_MAX} values; take a "
                "longer step, or fewer labels"
            )
        return cls(
            labels=labels,
            found=found,
            cell=group[points.stream[found.later]] * count + steps - first,
            cell_count=len(labels) * count,
            first_step=first,
            step_count=count,
            step_us=asked.step_us,
        )

    def rows(self, values: Floats) -> list[Row]:
        """Values by cell as an answer; NaN is none."""
        return [
            (
                self.labels[cell // self.step_count],
                (self.first_step + cell % self.step_count) * self.step_us,
                float(values[cell]),
            )
            for cell in np.flatnonzero(~np.isnan(values)).tolist()
        ]


def _groups(streams: pa.Table, count: int) -> tuple[list[tuple[str | None, ...]], Integers]:
    """The different labels, and which of them each stream has."""
    lists = [streams[f"l{place}"].to_pylist() for place in range(count)]
    labels = list(zip(*lists, strict=True)) if lists else [()] * streams.num_rows
    numbers: dict[tuple[str | None, ...], int] = {}
    group = np.array([numbers.setdefault(some, len(numbers)) for some in labels], np.int64)
    return list(numbers), group


def _totals(
    grid: _Grid, points: Points, columns: dict[str, pa.Array], asked: RateQuery, metric_type: str
) -> Floats:
    """How much was counted in each cell, or what was recorded there."""
    cell, size = grid.cell, grid.cell_count
    seen = np.bincount(cell, minlength=size) > 0
    total = _added(cell, grid.found.of(points.total), size)
    value = total
    if asked.aggregate == "rate":
        value = total / (asked.step_us / US_PER_S)
    elif asked.aggregate in ("sum", "avg") and metric_type not in NUMBERS:
        grown = grid.found.of(_floats(columns["sum"]))
        value = _added(cell, grown, size)
        if asked.aggregate == "avg":
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
            f"{len(cells)} quantiles are more than {QUANTILES_MAX}; take a longer step, or fewer "
            "labels"
        )
    ends = [*begins[1:], len(order)][: len(begins)]
    for cell, begin, end in zip(cells, begins, ends, strict=True):
        some = order[begin:end]
        value = quantile_of(buckets.low[some], buckets.high[some], buckets.count[some], share)
        values[cell] = np.nan if value is None else value
    return values


def _sent_quantiles(grid: _Grid, sent: pa.Array, share: float) -> Floats:
    """What summaries say themselves; of several in a cell the largest."""
    values = np.full(grid.cell_count, np.nan)
    newest = sent.take(pa.array(grid.found.later)).to_pylist()
    for cell, quantiles in zip(grid.cell.tolist(), newest, strict=True):
        found = [one["value"] for one in quantiles or () if one["quantile"] == share]
        values[cell] = np.fmax.reduce([values[cell], *found])
    return values
