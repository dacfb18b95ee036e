"""Range aggregations over rows: counted by SQL if it can, from lines that pass the pipeline if not.

sum by (service_name) (rate({…} |= "error" [5m]))     GROUP BY service_name and parts of time
sum by (status) (rate({…} | json [5m]))               the body of each line, and one column
quantile_over_time(0.9, {…} | unwrap ms [5m])         each line with all of its labels
"""

from __future__ import annotations

import math
import re
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from frazil.errors import Malformed, TooLarge
from frazil.languages.logql.labels import (
    LABEL_COLUMNS,
    LEVEL,
    LEVEL_ALIASES,
    STREAM_LABELS,
    TIME_NS,
    column_list,
    label_sql,
)
from frazil.languages.logql.lowering import ERROR_LABELS, LoweredSelection, lowered
from frazil.languages.logql.pipeline import (
    ERROR,
    EXTRACTED,
    LogLine,
    Step,
    compile_stages,
    label_test,
    number_of,
    passes,
)
from frazil.languages.logql.records import NS_PER_US, LineSpan, ReadRows, batches_of, line_of
from frazil.languages.logql.series import (
    LabelKey,
    LineSeries,
    LogSteps,
    key_of_pairs,
    label_key,
    shown_labels,
)
from frazil.languages.logql.syntax import (
    DropStage,
    JsonStage,
    KeepStage,
    LabelFilter,
    LabelFormat,
    LabelGrouping,
    LabelTest,
    LabelTests,
    LineFilter,
    LineFormat,
    LogfmtStage,
    LogRange,
    LogSelection,
    PatternStage,
    RegexpStage,
    Stage,
    Unwrap,
)
from frazil.languages.logql.units import size_bytes, value_duration_s
from frazil.languages.logql.windows import over_windows
from frazil.query import sql_where as where

PARTS_MAX = 20_000
"""Parts of time by which SQL counts; with more, lines are read one by one."""
SERIES_READ_MAX = 50_000
"""Series of one range aggregation, before others make fewer of them."""
SAMPLES_MAX = 20_000_000

COUNTED = frozenset({"count_over_time", "rate", "absent_over_time"})
MEASURED = frozenset({"bytes_over_time", "bytes_rate"})
PER_SECOND = frozenset({"rate", "bytes_rate"})
SAMPLE_ERROR = "SampleExtractionErr"

_FIELD = re.compile(r"\.([A-Za-z_][A-Za-z0-9_]*)")
_PARSERS = (JsonStage, LogfmtStage, PatternStage, RegexpStage)


def range_series(
    read: ReadRows,
    aggregation: LogRange,
    grid: LogSteps,
    grouping: LabelGrouping | None,
) -> list[LineSeries]:
    """Evaluate a range aggregation. Without `grouping`, samples differ by all labels."""
    simpler = _without_parsers(aggregation, grouping)
    lowering = lowered(simpler.selection)
    parts = _parts(simpler, grid)
    if _is_countable(simpler, grouping, lowering) and parts is not None:
        assert grouping is not None
        return _counted(read, simpler, grid, parts, grouping.labels, lowering)
    return _from_lines(read, simpler, grid, grouping, lowering)


def _without_parsers(aggregation: LogRange, grouping: LabelGrouping | None) -> LogRange:
    """Leave parsers out whose labels nothing needs."""
    stages = aggregation.selection.stages
    parser = next((i for i, stage in enumerate(stages) if isinstance(stage, _PARSERS)), None)
    needs_none = grouping is not None and not grouping.is_without and not grouping.labels
    if parser is None or not needs_none or aggregation.unwrap is not None:
        return aggregation
    if not all(
        isinstance(stage, (*_PARSERS, DropStage, KeepStage, LineFilter))
        for stage in stages[parser:]
    ):
        return aggregation
    kept = [*stages[:parser], *(one for one in stages[parser:] if isinstance(one, LineFilter))]
    return replace(aggregation, selection=LogSelection(aggregation.selection.matchers, tuple(kept)))


# Counted by SQL


@dataclass(frozen=True, slots=True)
class _Parts:
    """Time cut into equal parts; windows and steps are whole numbers of them."""

    origin_us: int
    width_us: int
    count: int
    step: int
    range: int


def _is_countable(
    aggregation: LogRange, grouping: LabelGrouping | None, lowering: LoweredSelection
) -> bool:
    is_counted = aggregation.operation in COUNTED | MEASURED and aggregation.unwrap is None
    is_by = grouping is not None and not grouping.is_without
    return lowering.is_exact and is_counted and is_by


def _parts(aggregation: LogRange, grid: LogSteps) -> _Parts | None:
    """None if there would be too many, or windows that are no whole microseconds."""
    widths = (aggregation.range_ns, grid.step_ns)
    if any(width % NS_PER_US for width in widths):
        return None
    width = math.gcd(*widths) // NS_PER_US
    length = (grid.end_ns - grid.start_ns + aggregation.range_ns) // NS_PER_US
    if length // width > PARTS_MAX:
        return None
    begin_ns = grid.start_ns - aggregation.offset_ns - aggregation.range_ns
    return _Parts(
        origin_us=begin_ns // NS_PER_US,
        width_us=width,
        count=length // width,
        step=grid.step_ns // NS_PER_US // width,
        range=aggregation.range_ns // NS_PER_US // width,
    )


def _counted(
    read: ReadRows,
    aggregation: LogRange,
    grid: LogSteps,
    parts: _Parts,
    labels: Sequence[str],
    lowering: LoweredSelection,
) -> list[LineSeries]:
    sums = _sums_by_part(read, aggregation, parts, labels, lowering)
    begins = np.arange(grid.count) * parts.step
    found = []
    for key, by_part in sums.items():
        running = np.zeros((2, parts.count + 1), dtype=np.int64)
        np.cumsum(by_part, axis=1, out=running[:, 1:])
        windows = running[:, begins + parts.range] - running[:, begins]
        values = windows[1].astype(np.float64)
        if aggregation.operation in PER_SECOND:
            values /= aggregation.range_ns / 1e9
        found.append(LineSeries(key, values, windows[0] > 0))
    return found


def _sums_by_part(
    read: ReadRows,
    aggregation: LogRange,
    parts: _Parts,
    labels: Sequence[str],
    lowering: LoweredSelection,
) -> dict[LabelKey, np.ndarray]:
    """Rows, and what is summed of them, by label and part of time."""
    names = list(dict.fromkeys(labels))
    amount = ", sum(octet_length(body)) AS size" if aggregation.operation in MEASURED else ""
    grouped = [group_sql(name, names) for name in names]
    if parts.count > 1:
        grouped.append(f"(CAST(time AS BIGINT) - {parts.origin_us + 1}) / {parts.width_us}")
    end_us = parts.origin_us + parts.count * parts.width_us
    span = LineSpan((parts.origin_us + 1) * NS_PER_US, (end_us + 1) * NS_PER_US)
    selected = "".join(f"{sql} AS c{index}, " for index, sql in enumerate(grouped))
    by = f"GROUP BY {', '.join(str(n + 1) for n in range(len(grouped)))}" if grouped else ""
    sql = (
        f"SELECT {selected}count(*) AS lines{amount} FROM logs "
        f"{where([*span.conditions(), *lowering.conditions])} {by}"
    )
    sums: dict[LabelKey, np.ndarray] = {}
    for batch in batches_of(read, sql):
        columns = [column.to_pylist() for column in batch.columns]
        lines = columns[len(grouped)]
        for index, values in enumerate(
            zip(*columns[: len(grouped)], strict=True) if grouped else [()]
        ):
            part = values[-1] if parts.count > 1 else 0
            key = key_of_pairs((n, v or "") for n, v in zip(names, values, strict=False))
            if key not in sums:
                _check_series(len(sums))
                sums[key] = np.zeros((2, parts.count), dtype=np.int64)
            sums[key][0, part] += lines[index]
            sums[key][1, part] += columns[-1][index] or 0
    return {key: by_part for key, by_part in sums.items() if by_part[0].any()}


def group_sql(name: str, names: Sequence[str]) -> str:
    """SQL of a label by which lines are grouped. The level has one name only."""
    if name in LEVEL_ALIASES and LEVEL in names:
        return label_sql(name).replace(f", {label_sql(LEVEL)})", ")")
    return label_sql(name)


def _check_series(count: int) -> None:
    if count >= SERIES_READ_MAX:
        raise TooLarge(
            f"the query has more than {SERIES_READ_MAX} series; aggregate by fewer labels, such as "
            "sum by (service_name), or narrow the selector"
        )


# From lines


class _Samples:
    """Times and values of each series, in the order in which they are read."""

    def __init__(self) -> None:
        self._by_key: dict[LabelKey, tuple[array[int], array[float]]] = {}
        self._count = 0

    def add(self, key: LabelKey, time_ns: int, value: float) -> None:
        pair = self._by_key.get(key)
        if pair is None:
            _check_series(len(self._by_key))
            pair = self._by_key[key] = (array("q"), array("d"))
        pair[0].append(time_ns)
        pair[1].append(value)
        self._count += 1
        if self._count > SAMPLES_MAX:
            raise TooLarge(f"the query has more than {SAMPLES_MAX} samples; narrow the time")

    def series(self, aggregation: LogRange, grid: LogSteps) -> Iterator[LineSeries]:
        for key, (times, values) in self._by_key.items():
            times_ns, numbers = np.array(times, np.int64), np.array(values, np.float64)
            order = np.argsort(times_ns, kind="stable")
            with np.errstate(all="ignore"):
                windows = over_windows(aggregation, grid, times_ns[order], numbers[order])
            if windows[1].any():
                yield LineSeries(key, *windows)


def _from_lines(
    read: ReadRows,
    aggregation: LogRange,
    grid: LogSteps,
    grouping: LabelGrouping | None,
    lowering: LoweredSelection,
) -> list[LineSeries]:
    begin_ns = grid.start_ns - aggregation.offset_ns - aggregation.range_ns
    span = LineSpan(
        begin_ns // NS_PER_US * NS_PER_US, grid.end_ns - aggregation.offset_ns + NS_PER_US
    )
    conditions = where([*span.conditions(), *lowering.conditions])
    steps = compile_stages(aggregation.selection.stages)
    value_of = _sampler(aggregation)
    key_of = _keyer(aggregation, grouping)
    samples = _Samples()
    for line in _lines(read, _needed_labels(aggregation, grouping), conditions):
        if not passes(line, steps):
            continue
        value = value_of(line)
        if value is None:
            continue
        if ERROR in line.parsed:
            raise _pipeline_error(line)
        samples.add(key_of(line), line.time_ns, value)
    return list(samples.series(aggregation, grid))


def _lines(read: ReadRows, names: frozenset[str] | None, conditions: str) -> Iterator[LogLine]:
    """FoundLines with these labels only, or all of them."""
    if names is None:
        columns = column_list(LABEL_COLUMNS)
        sql = f"SELECT {TIME_NS} AS time_ns, body, {columns} FROM logs {conditions}"
        for batch in batches_of(read, sql):
            yield from map(line_of, batch.to_pylist())
        return
    of_stream = [name for name in STREAM_LABELS if name in names]
    others = sorted(names.difference(STREAM_LABELS))
    listed = "".join(
        f", {_plain_sql(name)} AS c{i}" for i, name in enumerate((*of_stream, *others))
    )
    sql = f"SELECT {TIME_NS} AS time_ns, body{listed} FROM logs {conditions}"
    for batch in batches_of(read, sql):
        yield from _narrow_lines(batch, of_stream, others)


def _plain_sql(name: str) -> str:
    """SQL of a label itself: pipelines know that `level` may be the severity."""
    if name in LEVEL_ALIASES:
        return group_sql(name, (LEVEL,))
    return label_sql(name)


def _narrow_lines(
    batch: pa.RecordBatch, of_stream: Sequence[str], others: Sequence[str]
) -> Iterator[LogLine]:
    times, bodies, *values = (column.to_pylist() for column in batch.columns)
    split = len(of_stream)
    for time_ns, body, *labels in zip(times, bodies, *values, strict=True):
        stream = {n: v for n, v in zip(of_stream, labels[:split], strict=True) if v}
        metadata = {n: v for n, v in zip(others, labels[split:], strict=True) if v}
        yield LogLine(time_ns, body or "", stream, metadata)


def _pipeline_error(line: LogLine) -> Malformed:
    shown = shown_labels(label_key({ERROR: line.parsed[ERROR], **line.stream}))
    return Malformed(
        f"pipeline error: '{line.parsed[ERROR]}' for series: '{shown}'. Use a label filter to "
        f'intentionally skip this error. (e.g | __error__!="{line.parsed[ERROR]}"). To skip all '
        'potential errors you can match empty errors.(e.g __error__=""). The label filter can also '
        'be specified after unwrap. (e.g | unwrap latency | __error__="" )'
    )


def _sampler(aggregation: LogRange) -> Callable[[LogLine], float | None]:
    if aggregation.unwrap is not None:
        return _unwrapper(aggregation.unwrap)
    if aggregation.operation in MEASURED:
        return lambda line: float(len(line.line.encode()))
    return lambda _: 1.0


_CONVERSIONS: dict[str, Callable[[str], float | None]] = {
    "": number_of,
    "duration": value_duration_s,
    "duration_seconds": value_duration_s,
    "bytes": size_bytes,
}


def _unwrapper(unwrap: Unwrap) -> Callable[[LogLine], float | None]:
    """The value of a label, which is no label any more. None if the line has no sample."""
    convert = _CONVERSIONS[unwrap.conversion]
    tests: list[Step] = [label_test(test) for test in unwrap.tests]

    def value_of(line: LogLine) -> float | None:
        text = line.get(unwrap.label)
        if not text:
            return None
        value = convert(text)
        if value is None:
            line.fail(SAMPLE_ERROR, f"{unwrap.label} is {text!r}, which is no number")
            value = 0.0
        if not passes(line, tests):
            return None
        line.remove(unwrap.label)
        return value

    return value_of


def _keyer(aggregation: LogRange, grouping: LabelGrouping | None) -> Callable[[LogLine], LabelKey]:
    if grouping is None:
        return lambda line: label_key(line.labels())
    names = tuple(dict.fromkeys(grouping.labels))
    if grouping.is_without:
        return lambda line: key_of_pairs(
            pair for pair in line.labels().items() if pair[0] not in names
        )
    if LEVEL in names:
        return lambda line: key_of_pairs((name, _own(line, name)) for name in names)
    return lambda line: key_of_pairs((name, line.get(name)) for name in names)


def _own(line: LogLine, name: str) -> str:
    return "" if name in LEVEL_ALIASES and name not in line.labels() else line.get(name)


# The labels that a query needs


def _needed_labels(aggregation: LogRange, grouping: LabelGrouping | None) -> frozenset[str] | None:
    """None if it needs all of them."""
    if grouping is None or grouping.is_without:
        return None
    names = set(grouping.labels)
    if aggregation.unwrap is not None:
        names.add(aggregation.unwrap.label)
        names.update(_tested(aggregation.unwrap.tests))
    for stage in aggregation.selection.stages:
        names.update(_stage_labels(stage))
    names |= {name.removesuffix(EXTRACTED) for name in names}
    if names & LEVEL_ALIASES:
        names.add(LEVEL)
    return frozenset(names - ERROR_LABELS)


def _stage_labels(stage: Stage) -> Iterable[str]:
    if isinstance(stage, LabelFilter):
        return _tested((stage.test,))
    if isinstance(stage, LineFormat):
        return _FIELD.findall(stage.template)
    if isinstance(stage, LabelFormat):
        return [
            name
            for each in stage.assignments
            for name in (_FIELD.findall(each.value) if each.is_template else [each.value])
        ]
    if isinstance(stage, DropStage | KeepStage):
        return [choice.name for choice in stage.choices]
    return ()


def _tested(tests: Sequence[LabelTest]) -> Iterator[str]:
    for test in tests:
        if isinstance(test, LabelTests):
            yield from _tested(test.tests)
        else:
            yield test.name
