"""How the samples of a metrics query become series."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from frazil.errors import Malformed, TooLarge
from frazil.languages.traceql.nodes import MetricsStage, RankStage, SampleFilter
from frazil.languages.traceql.spansets import COMPARE
from frazil.query import EPOCH, MICROSECOND, JsonValue, TimeRange

STEPS_MAX = 11_000
SERIES_MAX = 1000
US_PER_S = 1_000_000
US_PER_MS = 1000
NANO = 1e9

_INT = re.compile(r"-?(?:0|[1-9]\d{0,17})", re.ASCII)
_FLOAT = re.compile(r"-?\d+\.\d+(?:e[-+]?\d{1,3})?", re.ASCII)


@dataclass(frozen=True, slots=True)
class StepRange:
    """The steps of a query, from `begin_us` to before `end_us`. Steps are aligned to 1970, except
    for a query of one value."""

    begin_us: int
    end_us: int
    step_us: int
    is_instant: bool = False

    @property
    def within(self) -> TimeRange:
        begin, end = (EPOCH + us * MICROSECOND for us in (self.begin_us, self.end_us))
        return TimeRange(since=begin, until=end)

    @property
    def step_seconds(self) -> float:
        return self.step_us / US_PER_S

    def begins_us(self) -> range:
        """Return when each step begins."""
        return range(self.begin_us, self.end_us, self.step_us)

    def begin_of(self, time_us: int) -> int:
        """Return when the step of a time begins."""
        return time_us - (time_us - self.begin_us) % self.step_us


def step_range(
    since: datetime.datetime, until: datetime.datetime, step: datetime.timedelta
) -> StepRange:
    """Return the steps that cover a time range. `Malformed` above `STEPS_MAX`."""
    step_us = step // MICROSECOND
    if step_us < US_PER_MS:
        raise Malformed(f"step is {step}; use at least one millisecond")
    begin_us = (since - EPOCH) // MICROSECOND // step_us * step_us
    end_us = -(-((until - EPOCH) // MICROSECOND) // step_us) * step_us
    count = (end_us - begin_us) // step_us
    if count > STEPS_MAX:
        raise Malformed(
            f"the time range has {count} steps, more than {STEPS_MAX}; use a longer step"
        )
    return StepRange(begin_us, end_us, step_us)


def whole_range(since: datetime.datetime, until: datetime.datetime) -> StepRange:
    """Return a time range as one step."""
    begin_us, end_us = ((time - EPOCH) // MICROSECOND for time in (since, until))
    return StepRange(begin_us, end_us, max(1, end_us - begin_us), is_instant=True)


@dataclass(frozen=True, slots=True)
class SpanExemplar:
    """A span behind a sample."""

    trace_id: str
    time_us: int
    value: float


@dataclass(frozen=True, slots=True)
class StepRow:
    """What the spans of one group in one step give: a value, or one for each quantile."""

    begin_us: int
    groups: tuple[str | None, ...]
    values: tuple[float, ...]
    bucket: int | None = None
    """Exponent of a bucket of a histogram."""
    exemplar: SpanExemplar | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceqlSeries:
    """A series: its labels, and a value for each step that has one."""

    labels: tuple[tuple[str, JsonValue], ...]
    samples: dict[int, float]
    """Begin of the step in microseconds -> value."""
    exemplars: list[SpanExemplar] = field(default_factory=list)


Labels = tuple[tuple[str, JsonValue], ...]


def series_of(
    rows: Iterable[StepRow], stage: MetricsStage, steps: StepRange, *, scale: float
) -> list[TraceqlSeries]:
    """Return the series of rows, by their labels. Values are divided by `scale`. Counts are 0 in
    steps without spans."""
    found: dict[str, TraceqlSeries] = {}
    is_count = stage.function in ("rate", "count_over_time")
    for row in rows:
        for index, value in enumerate(row.values):
            labels = _labels(row, stage, index, scale)
            key = repr(labels)
            if key not in found:
                samples = dict.fromkeys(steps.begins_us(), 0.0) if is_count else {}
                found[key] = TraceqlSeries(labels=labels, samples=samples)
            if len(found) > SERIES_MAX:
                raise TooLarge(
                    f"the query has more than {SERIES_MAX} series; group by fewer attributes, or "
                    "add conditions"
                )
            series = found[key]
            series.samples[row.begin_us] = _value(value, stage, steps, scale)
            if row.exemplar is not None:
                shown = replace(row.exemplar, value=series.samples[row.begin_us])
                series.exemplars.append(shown)
    return [found[key] for key in sorted(found)]


def _value(value: float, stage: MetricsStage, steps: StepRange, scale: float) -> float:
    if stage.function == "rate":
        return value / steps.step_seconds
    if stage.function in ("count_over_time", "histogram_over_time"):
        return value
    return value / scale


def _labels(row: StepRow, stage: MetricsStage, index: int, scale: float) -> Labels:
    labels = [
        (written, label_value(text))
        for written, text in zip(stage.written, row.groups, strict=True)
    ]
    if row.bucket is not None:
        labels.append(("__bucket", {"doubleValue": 2.0**row.bucket / scale}))
    elif stage.function == "quantile_over_time":
        labels.append(("p", {"doubleValue": stage.quantiles[index]}))
    elif not labels:
        labels.append(("__name__", {"stringValue": stage.function}))
    return tuple(labels)


def label_value(text: str | None) -> JsonValue:
    """Return the value of a label: of the type that its text looks like, as types are not
    grouped by."""
    if text is None:
        return {"stringValue": "nil"}
    if _INT.fullmatch(text):
        return {"intValue": text}
    if _FLOAT.fullmatch(text):
        return {"doubleValue": float(text)}
    return {"boolValue": text == "true"} if text in ("true", "false") else {"stringValue": text}


def ranked(
    series: Sequence[TraceqlSeries], stages: Iterable[RankStage | SampleFilter]
) -> list[TraceqlSeries]:
    """Apply the stages behind a metric. Series without samples are omitted."""
    kept = list(series)
    for stage in stages:
        if isinstance(stage, RankStage):
            kept = _largest(kept, stage)
        else:
            holds = COMPARE[stage.sign]
            kept = [
                replace(
                    each,
                    samples={
                        time: value
                        for time, value in each.samples.items()
                        if holds(value, stage.number)
                    },
                )
                for each in kept
            ]
    return [each for each in kept if each.samples]


def _largest(series: Sequence[TraceqlSeries], stage: RankStage) -> list[TraceqlSeries]:
    """Keep the largest, or smallest, samples of each step; of equal ones the first."""
    by_time: dict[int, list[tuple[float, int]]] = {}
    for index, each in enumerate(series):
        for time, value in each.samples.items():
            by_time.setdefault(time, []).append((-value if stage.is_top else value, index))
    kept = {
        (index, time)
        for time, values in by_time.items()
        for _, index in sorted(values)[: stage.count]
    }
    return [
        replace(
            each,
            samples={time: value for time, value in each.samples.items() if (index, time) in kept},
        )
        for index, each in enumerate(series)
    ]
