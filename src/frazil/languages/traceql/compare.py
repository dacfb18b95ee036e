"""compare(): attributes of selected spans beside those of all others, by their frequent values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from frazil.errors import Malformed
from frazil.languages.traceql.fields import ROOT_NAME, ROOT_SERVICE
from frazil.languages.traceql.metrics import step_sql
from frazil.languages.traceql.nodes import CompareStage, TraceqlQuery
from frazil.languages.traceql.series import StepRange, TraceqlSeries, label_value
from frazil.languages.traceql.span_rows import SpanReader
from frazil.query import EPOCH, MICROSECOND, Ask, TimeRange
from frazil.query import sql_text as text
from frazil.query import sql_texts as texts
from frazil.query import sql_where as where

KEYS_MAX = 200
"""Attributes of one kind that are compared: the most frequent ones."""
VALUES_MAX = 20_000
"""Values of all attributes that are looked at."""
TEXT_CHARS_MAX = 100_000
"""Characters of all compared values: the text of a query is limited. Rarer values are left out."""
US = 1000

INTRINSICS = {
    "name": "name",
    "status": "lower(status_code)",
    "statusMessage": "coalesce(status_message, '')",
    "kind": "lower(kind)",
    "rootName": ROOT_NAME,
    "rootServiceName": ROOT_SERVICE,
}


def compare_spans(
    ask: Ask, query: TraceqlQuery, stage: CompareStage, steps: StepRange
) -> list[TraceqlSeries]:
    """Return a series for each frequent value, of selected spans and of others, and the totals of
    each attribute."""
    if query.after:
        raise Malformed("compare() cannot be ranked or filtered; leave out what follows it")
    reader = SpanReader(query.pipeline, steps.within)
    selection = reader.condition(stage.selection)
    reader.joins.has_traces = True
    conditions = reader.plain_conditions()
    if conditions is None:
        raise Malformed("compare() needs plain filters before it: { … } | compare({ … })")
    selected = f"({' AND '.join([f'({selection})', *_range_of(stage)])}) IS TRUE"
    series: list[TraceqlSeries] = []
    for prefix, (keys, values) in _entries().items():
        spans = (
            f"SELECT {selected} AS is_selected, {step_sql(steps)} AS step, "
            f"unnest({keys}) AS key, unnest({values}) AS value FROM {reader.source()} "
            f"{where(conditions)}"
        )
        frequent = _frequent(ask, spans, stage.top)
        series += _series(ask, spans, prefix, frequent, steps)
    return series


def _range_of(stage: CompareStage) -> list[str]:
    """Conditions of the time range of a selection."""
    begin, end = (
        None if nano is None else EPOCH + nano // US * MICROSECOND
        for nano in (stage.begin_nano or None, stage.end_nano or None)
    )
    return TimeRange(since=begin, until=end).conditions()


def _entries() -> Mapping[str, tuple[str, str]]:
    """SQL of lists of keys and of their values, by the prefix of their attributes."""
    values = ", ".join(f"CAST({sql} AS VARCHAR)" for sql in INTRINSICS.values())
    return {
        "": (f"make_array({texts(list(INTRINSICS))})", f"make_array({values})"),
        "resource.": ("map_keys(resource_attributes)", "map_values(resource_attributes)"),
        "span.": ("map_keys(attributes)", "map_values(attributes)"),
    }


def _frequent(ask: Ask, spans: str, top: int) -> dict[str, list[str]]:
    """Return the most frequent values of each attribute, of selected spans and of others."""
    rows = ask(
        f"SELECT is_selected, key, value, count(*) AS n FROM ({spans}) "
        "WHERE value IS NOT NULL GROUP BY 1, 2, 3 "
        f"ORDER BY n DESC, 2, 3, 1 LIMIT {VALUES_MAX}"
    ).to_pylist()
    counts: dict[tuple[bool, str], int] = {}
    found: dict[str, list[str]] = {}
    char_count = 0
    for row in rows:
        char_count += len(row["key"]) + len(row["value"])
        if char_count > TEXT_CHARS_MAX:
            break
        side = row["is_selected"], row["key"]
        counts[side] = counts.get(side, 0) + 1
        if counts[side] <= top and (row["key"] in found or len(found) < KEYS_MAX):
            values = found.setdefault(row["key"], [])
            if row["value"] not in values:
                values.append(row["value"])
    return found


def _series(
    ask: Ask, spans: str, prefix: str, frequent: Mapping[str, list[str]], steps: StepRange
) -> Iterator[TraceqlSeries]:
    if not frequent:
        return
    chosen = " OR ".join(
        f"(key = {text(key)} AND value IN ({texts(values)}))" for key, values in frequent.items()
    )
    value = f"CASE WHEN {chosen} THEN value END"
    rows = ask(
        f"SELECT is_selected, step, key, {value} AS shown, count(*) AS n FROM ({spans}) "
        f"WHERE key IN ({texts(list(frequent))}) AND value IS NOT NULL GROUP BY 1, 2, 3, 4"
    ).to_pylist()
    found: dict[tuple[bool, str, str | None], TraceqlSeries] = {}
    for row in rows:
        side = "selection" if row["is_selected"] else "baseline"
        for shown in {row["shown"], None}:
            series = found.setdefault(
                (row["is_selected"], row["key"], shown),
                _empty(side if shown is not None else f"{side}_total", prefix + row["key"], shown),
            )
            series.samples[row["step"]] = series.samples.get(row["step"], 0.0) + row["n"]
    for key in sorted(found, key=repr):
        yield found[key]


def _empty(meta: str, name: str, value: str | None) -> TraceqlSeries:
    labels: list[tuple[str, Any]] = [("__meta_type", {"stringValue": meta})]
    shown = {} if value is None else label_value(value)  # totals have no value
    return TraceqlSeries(labels=(*labels, (name, shown)), samples={})
