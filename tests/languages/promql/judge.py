"""Runs promqltest scripts against our evaluator."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

import msgspec
import numpy as np

from frazil.errors import Rejected
from frazil.languages.promql.answer import Answer, SeriesPoints
from frazil.languages.promql.evaluate import evaluate_instant, evaluate_range
from frazil.languages.promql.histogram import BucketCounts, NativeHistogram
from frazil.languages.promql.points import LabelSet
from tests.languages.promql.memory import MemoryPoints, custom_histograms, is_end
from tests.languages.promql.notation import Point, number, series_of
from tests.languages.promql.pinned import pinned_answer
from tests.languages.promql.scripts import Command

TOLERANCE = 1e-6
_TINY = 2.2250738585072014e-308
_MINUTE_MS = 60_000
_OF_THE_QUERY = re.compile(r"\b(start|end|range|step)\(\)")


def findings(commands: Sequence[Command]) -> Iterator[tuple[Command, str]]:
    """Run a script; yield each evaluation with what is wrong with its result, if anything."""
    source = MemoryPoints()
    for command in commands:
        if command.name == "clear":
            source = MemoryPoints()
        elif command.name == "load":
            load(command, source)
        else:
            yield command, finding(command, source)


def load(command: Command, source: MemoryPoints) -> None:
    """Add what a script loads."""
    classic: dict[LabelSet, dict[int, float]] = {}
    for line in command.lines:
        if "@st " in line:
            continue
        labels, points = series_of(line)
        times = range(0, command.step_ms * len(points), command.step_ms)
        source.add(labels, times, points)
        classic[labels] = {
            time: point.value
            for time, point in zip(times, points, strict=True)
            if point.value is not None and point.histogram is None and not is_end(point.value)
        }
    if command.with_custom:
        for labels, histograms in custom_histograms(classic).items():
            source.add(labels, histograms, histograms.values())


def finding(command: Command, source: MemoryPoints) -> str:
    """Return what is wrong with an evaluation; nothing if all is well."""
    kinds = {expect.kind for expect in command.expects}
    try:
        if command.is_range:
            answer = evaluate_range(
                command.query, source, command.start_ms, command.end_ms, command.step_ms
            )
        else:
            answer = evaluate_instant(command.query, source, command.end_ms)
    except Rejected as error:
        return "" if "fail" in kinds else f"failed: {error}"
    wrong = _wrong(command, answer, kinds)
    if wrong or command.is_range or command.has_points:
        return wrong
    wrong = _wrong_when_pinned(command, source, kinds)
    if wrong or "ordered" in kinds:
        return wrong
    if command.text is not None or _OF_THE_QUERY.search(command.query):
        return wrong
    return _wrong_in_range(command, source, answer)


def _wrong(command: Command, answer: Answer, kinds: set[str]) -> str:
    if "fail" in kinds:
        return "did not fail"
    return _wrong_notes(command, answer) or _wrong_result(command, answer, "ordered" in kinds)


def _wrong_when_pinned(command: Command, source: MemoryPoints, kinds: set[str]) -> str:
    """With `@` at all selectors the result is the same at any other time."""
    for at_ms in (-_MINUTE_MS, 10 * command.end_ms):
        answer = pinned_answer(command.query, source, command.end_ms, at_ms)
        if answer is None:
            return ""
        moved = msgspec.structs.replace(command, start_ms=at_ms, end_ms=at_ms)
        wrong = _wrong_result(moved, answer, "ordered" in kinds)
        if wrong:
            return f"with @ everywhere, at {at_ms}: {wrong}"
    return ""


def _wrong_in_range(command: Command, source: MemoryPoints, instant: Answer) -> str:
    """At a step of a range query the result is the same."""
    time = command.end_ms
    answer = evaluate_range(command.query, source, time - _MINUTE_MS, time + _MINUTE_MS, _MINUTE_MS)
    middle = {}
    for series in answer.all_series():
        chosen = series.times_ms == time
        histograms = [each for each in series.histograms if each[0] == time]
        if chosen.any() or histograms:
            middle[series.labels] = SeriesPoints(
                series.labels, series.times_ms[chosen], series.values[chosen], histograms
            )
    if instant.number is not None:
        values = [float(series.values[0]) for series in middle.values()]
        is_same = len(values) == 1 and is_close(values[0], instant.number)
        return "" if is_same else f"in a range it is {values}, not {instant.number}"
    for series in instant.all_series():
        other = middle.pop(series.labels, None)
        if other is None:
            return f"in a range {series.labels} is missing"
        if wrong := _difference(series, other):
            return f"in a range {series.labels} differs: {wrong}"
    return f"in a range there is {list(middle)}, too" if middle else ""


def _difference(series: SeriesPoints, other: SeriesPoints) -> str:
    if len(series.values) != len(other.values):
        return f"{series.values} is not {other.values}"
    for one, two in zip(series.values, other.values, strict=True):
        if not is_close(float(one), float(two)):
            return f"{one} is not {two}"
    for first, second in zip(series.histograms, other.histograms, strict=True):
        if wrong := difference(first[1], second[1], False):
            return wrong
    return ""


def _wrong_notes(command: Command, answer: Answer) -> str:
    for kind, notes in (("warn", answer.warnings), ("info", answer.infos)):
        wanted = [each for each in command.expects if each.kind == kind]
        if any(each.kind == f"no_{kind}" for each in command.expects) and notes:
            return f"unexpected: {notes}"
        if not wanted:
            continue
        matches = [
            [each for each in wanted if _matches(each.match, each.text, note)] for note in notes
        ]
        if not all(matches):
            return f"unexpected: {notes}"
        for each in wanted:
            if not any(each in found for found in matches):
                return f"expected {each}, got {notes}"
    return ""


def _matches(match: str, text: str, note: str) -> bool:
    if match == "msg":
        return note == text
    return not match or re.search(text, note) is not None


def _wrong_result(command: Command, answer: Answer, is_ordered: bool) -> str:
    if command.text is not None:
        is_same = answer.text == ast.literal_eval(
            command.text if command.text[0] != "`" else repr(command.text[1:-1])
        )
        return "" if is_same else f"the text is {answer.text!r}"
    if answer.number is not None:
        if len(command.lines) != 1:
            return "a scalar was not expected"
        wanted = number(command.lines[0])
        return "" if is_close(answer.number, wanted) else f"{answer.number}, expected {wanted}"
    found = {series.labels: series for series in answer.all_series()}
    if is_ordered:
        order = [series_of(line)[0] for line in command.lines]
        if order != list(found):
            return f"the order is {list(found)}"
    for line in command.lines:
        labels, points = series_of(line)
        series = found.pop(labels, None)
        if series is None:
            return f"{labels} is missing; there is {list(found)}"
        if wrong := _wrong_series(command, series, points):
            return f"{labels}: {wrong}"
    return f"unexpected {[str(each) for each in found.values()]}" if found else ""


def _wrong_series(command: Command, series: SeriesPoints, points: list[Point]) -> str:
    step_ms = command.step_ms or 1
    times = [command.start_ms + at * step_ms for at in range(len(points))]
    floats = dict(zip(series.times_ms.tolist(), series.values.tolist(), strict=True))
    histograms = dict(series.histograms)
    if not command.is_range and not command.has_points:
        times = [command.end_ms]
    for time, point in zip(times, points, strict=True):
        if point.histogram is not None:
            histogram = histograms.pop(time, None)
            if histogram is None:
                return f"no histogram at {time}; {floats}"
            if wrong := difference(point.histogram, histogram, point.has_hint):
                return f"at {time}: {wrong}"
        elif point.value is not None:
            value = floats.pop(time, None)
            if value is None or not is_close(point.value, value):
                return f"{value} at {time}, expected {point.value}"
    return f"unexpected {floats} {histograms}" if floats or histograms else ""


def is_close(one: float, other: float) -> bool:
    """Whether two numbers are the same up to the tolerance of promqltest."""
    if np.isnan(one) or np.isnan(other):
        return bool(np.isnan(one) and np.isnan(other) and is_end(one) == is_end(other))
    if one == other:
        return True
    total, apart = abs(one) + abs(other), abs(one - other)
    if one == 0 or other == 0 or total < _TINY:
        return apart < TOLERANCE * _TINY
    return apart / min(total, 1.7976931348623157e308) < TOLERANCE


def difference(wanted: NativeHistogram, found: NativeHistogram, has_hint: bool) -> str:
    """Return in what two histograms differ."""
    pairs = [
        ("schema", wanted.schema, found.schema),
        ("count", wanted.count, found.count),
        ("sum", wanted.sum, found.sum),
        ("zero threshold", wanted.zero_threshold, found.zero_threshold),
        ("zero count", wanted.zero_count, found.zero_count),
    ]
    for name, one, other in pairs:
        if not is_close(one, other):
            return f"{name} {other}, expected {one}"
    if wanted.bounds != found.bounds:
        return f"bounds {found.bounds}, expected {wanted.bounds}"
    for one_side, other_side in (
        (wanted.positive, found.positive),
        (wanted.negative, found.negative),
    ):
        if wrong := _bucket_difference(one_side, other_side):
            return wrong
    if has_hint and wanted.hint is not found.hint:
        return f"hint {found.hint}, expected {wanted.hint}"
    return ""


def _bucket_difference(wanted: BucketCounts, found: BucketCounts) -> str:
    is_same = len(wanted.counts) == len(found.counts) and (
        not len(wanted.counts) or wanted.first == found.first
    )
    if is_same and all(map(is_close, wanted.counts.tolist(), found.counts.tolist())):
        return ""
    return f"buckets {found}, expected {wanted}"
