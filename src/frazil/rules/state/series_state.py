"""SeriesState: series that a rule has stored, so that those that end are marked as ended."""

from __future__ import annotations

from collections.abc import Iterable

from frazil.rules.samples import LabelPairs, RuleSample


class SeriesState:
    """Series of one rule. Owned by the thread that evaluates."""

    def __init__(self) -> None:
        self._stored: set[LabelPairs] = set()

    def step(self, samples: Iterable[RuleSample], at_ms: int) -> list[RuleSample]:
        """Return the samples to store: these, and an end of each series that is no longer there."""
        stored = list(samples)
        now = {sample.labels for sample in stored}
        ended = [
            RuleSample(labels=labels, value=None, time_ms=at_ms)
            for labels in sorted(self._stored - now)
        ]
        self._stored = now
        return stored + ended

    def end(self, at_ms: int) -> list[RuleSample]:
        """Return an end of every series: the rule was removed."""
        return self.step((), at_ms)
