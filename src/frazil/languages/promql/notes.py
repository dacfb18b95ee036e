"""Notes: the warnings and infos of an evaluation, each once."""

from __future__ import annotations

import datetime
import math
from collections.abc import Iterator, Sequence

from frazil.languages.promql.histogram import NativeHistogram, ResetHint
from frazil.languages.promql.histogram_sums import Combined
from frazil.languages.promql.labels import quoted
from frazil.languages.promql.numbers import short

WARNING = "PromQL warning"
INFO = "PromQL info"
_MONOTONICITY = (
    "input to histogram_quantile needed to be fixed for monotonicity (see "
    "https://prometheus.io/docs/prometheus/latest/querying/functions/#histogram_quantile)"
)


class _Fix:
    """How falling bucket counts were raised, over all steps."""

    def __init__(self, begin: int) -> None:
        self.begin = begin
        self.from_ms = self.until_ms = 0
        self.least, self.greatest, self.most = math.inf, -math.inf, 0.0
        self.count = 0

    def __str__(self) -> str:
        times = (_utc(self.from_ms), _utc(self.until_ms))
        return (
            f", from buckets {short(self.least)} to {short(self.greatest)}, with a max diff of"
            f" {self.most:.2g}, over {self.count} samples from {times[0]} to {times[1]}"
        )


def _utc(time_ms: int) -> str:
    time = datetime.datetime.fromtimestamp(time_ms // 1000, datetime.UTC)
    return time.strftime("%Y-%m-%dT%H:%M:%SZ")


class Notes:
    """Collects what a query should be told about its result."""

    def __init__(self) -> None:
        self._begins: dict[tuple[str, str], int] = {}
        self._fixes: dict[str, _Fix] = {}

    def warn(self, message: str, begin: int) -> None:
        """Add a warning about the expression that begins at a place."""
        self._begins.setdefault((WARNING, message), begin)

    def inform(self, message: str, begin: int) -> None:
        """Add an info about the expression that begins at a place."""
        self._begins.setdefault((INFO, message), begin)

    def of_metric(self, message: str, name: str, begin: int, is_warning: bool = True) -> None:
        """Add a note about a metric, which may have no name."""
        text = f"{message} for metric name {quoted(name)}" if name else message
        (self.warn if is_warning else self.inform)(text, begin)

    def fixed(
        self, name: str, begin: int, time_ms: int, least: float, greatest: float, most: float
    ) -> None:
        """Add that bucket counts of a metric fell, at one step."""
        text = f"{_MONOTONICITY} for metric name {quoted(name)}" if name else _MONOTONICITY
        fix = self._fixes.setdefault(text, _Fix(begin))
        fix.from_ms = min(fix.from_ms, time_ms) if fix.count else time_ms
        fix.until_ms = max(fix.until_ms, time_ms) if fix.count else time_ms
        fix.least, fix.greatest = min(fix.least, least), max(fix.greatest, greatest)
        fix.most = max(fix.most, most)
        fix.count += 1

    def written(self, query: str) -> tuple[list[str], list[str]]:
        """Return all warnings and all infos, with their lines and columns."""
        warnings: list[str] = []
        infos: list[str] = []
        for (kind, message), begin in self._begins.items():
            text = f"{kind}: {message} ({_place(query, begin)})"
            (warnings if kind == WARNING else infos).append(text)
        infos.extend(self._written_fixes(query))
        return warnings, infos

    def _written_fixes(self, query: str) -> Iterator[str]:
        for message, fix in self._fixes.items():
            yield f"{INFO}: {message}{fix} ({_place(query, fix.begin)})"


def _place(query: str, begin: int) -> str:
    line = query.count("\n", 0, begin) + 1
    column = begin - (query.rfind("\n", 0, begin) + 1) + 1
    return f"{line}:{column}"


def mixed_samples(notes: Notes, name: str, begin: int) -> None:
    """Floats and histograms in one series."""
    message = f"encountered a mix of histograms and floats for metric name {quoted(name)}"
    notes.warn(message, begin)


def mixed_schemas(notes: Notes, name: str, begin: int) -> None:
    """Exponential and custom buckets together."""
    notes.warn(
        "vector contains a mix of histograms with exponential and custom buckets schemas for"
        f" metric name {quoted(name)}",
        begin,
    )


def not_counter(notes: Notes, name: str, begin: int) -> None:
    """rate or its like of a gauge histogram."""
    notes.warn(f"this native histogram metric is not a counter: {quoted(name)}", begin)


def not_gauge(notes: Notes, name: str, begin: int) -> None:
    """delta or its like of a counter histogram."""
    notes.warn(f"this native histogram metric is not a gauge: {quoted(name)}", begin)


def ignored_in_range(notes: Notes, name: str, begin: int) -> None:
    """A function of floats saw histograms between them."""
    notes.inform(
        "ignored histograms in a range containing both floats and histograms for metric name"
        f" {quoted(name)}",
        begin,
    )


def ignored_in_aggregation(notes: Notes, operator: str, begin: int) -> None:
    """An aggregation of floats saw histograms."""
    notes.inform(f"ignored histogram in {operator} aggregation", begin)


def reconciled(notes: Notes, operation: str, begin: int) -> None:
    """Custom bounds that not all histograms have were left out."""
    notes.inform(f"mismatched custom buckets were reconciled during {operation}", begin)


def reset_collision(notes: Notes, operation: str, begin: int) -> None:
    """Histograms after a reset and not after one were put together."""
    notes.warn(f"conflicting counter resets during histogram {operation}", begin)


def note_total(
    notes: Notes, points: Sequence[NativeHistogram], total: Combined, begin: int
) -> None:
    """What there is to say of a sum or mean of histograms."""
    if total.is_reconciled:
        reconciled(notes, "aggregation", begin)
    hints = {each.hint for each in points}
    if ResetHint.RESET in hints and ResetHint.NOT_RESET in hints:
        reset_collision(notes, "aggregation", begin)


def bad_quantile(notes: Notes, q: float, begin: int) -> None:
    """A quantile outside of 0 to 1."""
    notes.warn(f"quantile value should be between 0 and 1, got {short(q)}", begin)
