"""Answers of PromQL as the JSON of Prometheus' API, in pieces. Points are written by compiled code.

[1435781430.781, "1.5"]
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

import msgspec
import numpy as np

from frazil.languages.prometheus.kernels import Bools, Floats, Longs
from frazil.languages.promql.answer import Answer, SeriesPoints
from frazil.languages.promql.histogram import NativeHistogram, slices_of
from frazil.languages.promql.numbers import positional
from frazil.languages.promql.points import LabelSet
from frazil.model import MiB
from frazil.model.arrow import write_double, write_integer
from frazil.model.protobuf import compiled, part, put_byte

PIECE_BYTES = MiB
"""Pieces are at least as long, but for the last one."""
POINT_BYTES_MAX = 128
"""More than a time and a number take, with what numbers are put together from."""
MS_PER_S = 1000
_OPEN_LEFT, _OPEN_RIGHT, _CLOSED = 0, 1, 3
"""Which bounds of a bucket do not belong to it."""
_OPEN, _CLOSE, _COMMA, _QUOTE, _POINT, _ZERO, _MINUS = b'[],".0-'
_INFINITY = np.frombuffer(b"+Inf", np.uint8).copy()


def answer_pieces(answer: Answer, limit: int) -> Iterator[bytes]:
    """Yield the JSON of `resultType` and `result`, without braces. `limit` cuts series; 0 does
    not."""
    kind = answer.kind
    head = b'"resultType":"%s","result":' % kind.encode()
    if kind in ("scalar", "string"):
        text = answer.text if answer.number is None else _number(answer.number)
        pair = [_seconds(int(answer.times_ms[0])), text]
        yield head + msgspec.json.encode(pair)
        return
    pieces, size = [head + b"["], 0
    for number, series in enumerate(islice(_series(answer), limit or None)):
        pieces.append((b"," if number else b"") + series)
        size += len(series)
        if size >= PIECE_BYTES:
            yield b"".join(pieces)
            pieces, size = [], 0
    yield b"".join([*pieces, b"]"])


def series_count(answer: Answer) -> int:
    """Return how many series an answer has."""
    return len(answer.labels) + len(answer.series)


def _series(answer: Answer) -> Iterator[bytes]:
    is_vector = answer.kind == "vector"
    if answer.histograms is not None or answer.series:
        for series in answer.all_series():
            yield _mixed(series, is_vector)
        return
    buffer = np.empty(POINT_BYTES_MAX * (len(answer.times_ms) + 1), np.uint8)
    for labels, values, present in zip(answer.labels, answer.values, answer.present, strict=True):
        points = _points(answer.times_ms, values, present, buffer)
        yield _one(labels, b'"value":%s' % points if is_vector else b'"values":[%s]' % points)


def _one(labels: LabelSet, values: bytes) -> bytes:
    return b'{"metric":%s,%s}' % (msgspec.json.encode(dict(labels)), values)


def _mixed(series: SeriesPoints, is_vector: bool) -> bytes:
    """Return a series that may have histograms."""
    parts = []
    if len(series.times_ms):
        buffer = np.empty(POINT_BYTES_MAX * (len(series.times_ms) + 1), np.uint8)
        present = np.ones(len(series.times_ms), np.bool_)
        points = _points(series.times_ms, series.values, present, buffer)
        parts.append(b'"value":%s' % points if is_vector else b'"values":[%s]' % points)
    if series.histograms:
        found = [[_seconds(time), _histogram(each)] for time, each in series.histograms]
        name, content = ("histogram", found[0]) if is_vector else ("histograms", found)
        parts.append(b'"%s":%s' % (name.encode(), msgspec.json.encode(content)))
    return _one(series.labels, b",".join(parts))


def _histogram(histogram: NativeHistogram) -> dict[str, object]:
    slices = slices_of(histogram)
    buckets = [
        [_rule(histogram, lower, upper), *map(_number, (lower, upper, count))]
        for lower, upper, count in zip(*(each.tolist() for each in slices), strict=True)
    ]
    found = {"count": _number(histogram.count), "sum": _number(histogram.sum)}
    return {**found, "buckets": buckets} if buckets else {**found}


def _rule(histogram: NativeHistogram, lower: float, upper: float) -> int:
    if histogram.is_custom:
        return _OPEN_LEFT
    threshold = histogram.zero_threshold
    if (lower, upper) == (-threshold, threshold):
        return _CLOSED
    return _OPEN_RIGHT if upper <= 0 else _OPEN_LEFT


def _number(value: float) -> str:
    """Return a number as Prometheus writes it into JSON."""
    if value and (abs(value) < 1e-6 or abs(value) >= 1e21) and np.isfinite(value):
        return np.format_float_scientific(value, trim="-", exp_digits=2)
    return positional(value)


def _seconds(time_ms: int) -> float | int:
    return time_ms // MS_PER_S if time_ms % MS_PER_S == 0 else time_ms / MS_PER_S


def _points(times_ms: Longs, values: Floats, present: Bools, buffer: np.ndarray) -> bytes:
    # Copies: of arrays that cannot be written, numba would compile another version.
    times_ms, values, present = np.array(times_ms), np.array(values), np.array(present)
    begin = buffer.ctypes.data
    end = _write_points(times_ms, values, values.view(np.int64), present, begin)
    return buffer[: end - begin].tobytes()


@compiled
def _write_points(times_ms: Longs, values: Floats, bits: Longs, present: Bools, at: int) -> int:
    """Write the points that are present, with commas between them. Returns the address after
    them."""
    is_first = True
    for step in range(len(times_ms)):
        if not present[step]:
            continue
        if not is_first:
            put_byte(at, _COMMA)
            at += 1
        is_first = False
        put_byte(at, _OPEN)
        at = _write_time(times_ms[step], at + 1)
        put_byte(at, _COMMA)
        put_byte(at + 1, _QUOTE)
        at = _write_value(values[step], bits[step], at + 2)
        put_byte(at, _QUOTE)
        put_byte(at + 1, _CLOSE)
        at += 2
    return at


@part
def _write_time(time_ms: int, at: int) -> int:
    """Write seconds, with milliseconds if there are any."""
    if time_ms < 0:
        put_byte(at, _MINUS)
        at += 1
        time_ms = -time_ms
    at = write_integer(time_ms // MS_PER_S, at)
    rest = time_ms % MS_PER_S
    if rest:
        put_byte(at, _POINT)
        put_byte(at + 1, _ZERO + rest // 100)
        put_byte(at + 2, _ZERO + rest // 10 % 10)
        put_byte(at + 3, _ZERO + rest % 10)
        at += 4
    return at


@part
def _write_value(value: float, bits: int, at: int) -> int:
    if not np.isinf(value):
        return write_double(bits, at)
    for place in range(len(_INFINITY)):
        put_byte(at + place, _INFINITY[place])
    if value < 0:
        put_byte(at, _MINUS)
    return at + len(_INFINITY)
