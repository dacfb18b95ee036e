"""PromqlRows: PromQL over the tables of a node, as rows of a rule."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import pyarrow as pa

from frazil.errors import Malformed
from frazil.languages import (
    KnownLabels,
    MetricDirectory,
    PromqlAnswer,
    TablePointSource,
    evaluate_instant,
    evaluate_range,
    prettified,
)
from frazil.model import Clock
from frazil.results import CancelToken, Limits, Result
from frazil.rules.samples import RuleSample, label_pairs


class PromqlRows:
    """Evaluates PromQL as of one time or several. Thread-safe."""

    def __init__(
        self, sql: Callable[[str, Limits, CancelToken], Result], *, bytes_max: int, clock: Clock
    ) -> None:
        """`bytes_max`: of the points that one selector reads."""
        self._sql = sql
        self._bytes_max = bytes_max
        self._directory = MetricDirectory(clock)
        self._known = KnownLabels()

    def __call__(
        self, text: str, at_ms: int, limits: Limits, cancel_token: CancelToken
    ) -> Iterator[RuleSample]:
        """Return the rows. `Malformed` if the result is neither a vector nor a scalar."""
        source = self._source(limits, cancel_token)
        return samples_of_answer(evaluate_instant(text, source, at_ms, cancel=cancel_token), at_ms)

    def over_time(
        self,
        text: str,
        times_ms: Sequence[int],
        step_ms: int,
        limits: Limits,
        cancel_token: CancelToken,
    ) -> Iterator[RuleSample]:
        """Return the rows as of several times, which are `step_ms` apart."""
        source = self._source(limits, cancel_token)
        begin_ms, end_ms = times_ms[0], times_ms[-1]
        answer = evaluate_range(text, source, begin_ms, end_ms, step_ms, cancel=cancel_token)
        for series in answer.all_series():
            labels = label_pairs(dict(series.labels))
            for time_ms, value in zip(series.times_ms, series.values, strict=True):
                yield RuleSample(labels=labels, value=float(value), time_ms=int(time_ms))

    def _source(self, limits: Limits, cancel_token: CancelToken) -> TablePointSource:
        read = Limits(timeout_ms=limits.timeout_ms, bytes_max=self._bytes_max)

        def ask(sql: str) -> pa.Table:
            own_token = CancelToken()
            cancel_token.attach(own_token)
            with self._sql(sql, read, own_token) as result:
                return result.arrow()

        return TablePointSource(ask, self._directory, self._known, cancel_token.check)


def check_promql(text: str) -> None:
    """Raise `Malformed` if a text is not PromQL."""
    prettified(text)


def samples_of_answer(answer: PromqlAnswer, at_ms: int) -> Iterator[RuleSample]:
    """Yield the rows of an answer. A series of native histograms is none."""
    if answer.kind == "scalar" and answer.number is not None:
        yield RuleSample(labels=(), value=answer.number, time_ms=at_ms)
    elif answer.kind == "vector":
        for series in answer.all_series():
            for value in series.values:
                labels = label_pairs(dict(series.labels))
                yield RuleSample(labels=labels, value=float(value), time_ms=at_ms)
    else:
        raise Malformed(f"expr gives a {answer.kind}; a rule needs a vector or a scalar")
