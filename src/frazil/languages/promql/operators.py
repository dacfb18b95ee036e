"""Operators on two numbers, or on histograms."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

from frazil.languages.promql.histogram import (
    NativeHistogram,
    ResetHint,
    divided,
    is_equal,
    scaled,
    with_hint,
)
from frazil.languages.promql.histogram_sums import added, subtracted
from frazil.languages.promql.histogram_values import trimmed
from frazil.languages.promql.kernels.arrays import Flags, Floats
from frazil.languages.promql.labels import quoted
from frazil.languages.promql.notes import Notes, reconciled, reset_collision

ARITHMETIC: Mapping[str, Callable[[Floats, Floats], Floats]] = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "/": np.divide,
    "%": np.fmod,
    "^": np.power,
    "atan2": np.arctan2,
}
COMPARING: Mapping[str, Callable[[Floats, Floats], Flags]] = {
    "==": np.equal,
    "!=": np.not_equal,
    "<": np.less,
    ">": np.greater,
    "<=": np.less_equal,
    ">=": np.greater_equal,
}
TRIMMING = {"</": True, ">/": False}


def scalars(operator: str, left: Floats, right: Floats) -> Floats:
    """Evaluate an operator between two scalars."""
    with np.errstate(all="ignore"):
        if operator in ARITHMETIC:
            return ARITHMETIC[operator](left, right)
        return COMPARING[operator](left, right).astype(np.float64)


class Outcome(NamedTuple):
    """What an operator made of two values, one of which is a histogram."""

    histogram: NativeHistogram | None
    is_kept: bool = True
    """A comparison may leave a value out."""
    is_possible: bool = True


IMPOSSIBLE = Outcome(None, is_kept=False, is_possible=False)


class HistogramOperator:
    """Evaluates an operator where at least one side is a histogram."""

    def __init__(self, operator: str, notes: Notes, begin: int) -> None:
        self._operator = operator
        self._notes = notes
        self._begin = begin

    def between(self, left: float | NativeHistogram, right: float | NativeHistogram) -> Outcome:
        """Return the outcome for two values."""
        outcome: Outcome | None = None
        if isinstance(left, NativeHistogram):
            if isinstance(right, NativeHistogram):
                outcome = self._histograms(left, right)
            else:
                outcome = self._with_number(left, right)
        elif isinstance(right, NativeHistogram) and self._operator == "*":
            outcome = Outcome(scaled(right, left))
        if outcome is None:
            self.note_types(left, right)
            return IMPOSSIBLE
        return outcome

    def _with_number(self, left: NativeHistogram, right: float) -> Outcome | None:
        """None if the operator is not defined."""
        if self._operator == "*":
            return Outcome(scaled(left, right))
        if self._operator == "/":
            return Outcome(divided(left, right))
        if self._operator in TRIMMING:
            return Outcome(trimmed(left, right, TRIMMING[self._operator]))
        return None

    def _histograms(self, left: NativeHistogram, right: NativeHistogram) -> Outcome | None:
        """None if the operator is not defined."""
        if self._operator in ("==", "!="):
            return Outcome(left, is_equal(left, right) == (self._operator == "=="))
        if self._operator not in ("+", "-"):
            return None
        is_sum = self._operator == "+"
        combined = added(left, right) if is_sum else subtracted(left, right)
        if combined is None:
            self._notes.warn(
                f"incompatible bucket layout encountered for binary operator {self._operator}",
                self._begin,
            )
            return IMPOSSIBLE
        operation = "addition" if is_sum else "subtraction"
        if combined.is_reconciled:
            reconciled(self._notes, operation, self._begin)
        if combined.is_collision:
            reset_collision(self._notes, operation, self._begin)
        result = combined.histogram
        return Outcome(result if is_sum else with_hint(result, ResetHint.GAUGE))

    def note_types(self, left: float | NativeHistogram, right: float | NativeHistogram) -> None:
        """Say that the operator is not defined for the kinds of two values."""
        kinds = [
            "histogram" if isinstance(side, NativeHistogram) else "float" for side in (left, right)
        ]
        self._notes.inform(
            "incompatible sample types encountered for binary operator"
            f" {quoted(self._operator)}: {kinds[0]} {self._operator} {kinds[1]}",
            self._begin,
        )
