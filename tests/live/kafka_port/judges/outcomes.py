"""What a test came to on a broker, and what two brokers together mean."""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

OUTPUT_CHARACTERS_SHOWN = 4000


class Outcome(enum.StrEnum):
    """How a test ended."""

    PASSED = "passed"
    FAILED = "failed"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """How a test ended, and what it printed last."""

    outcome: Outcome
    output: str = ""

    @staticmethod
    def of(outcome: Outcome, output: str) -> Result:
        return Result(outcome=outcome, output=output[-OUTPUT_CHARACTERS_SHOWN:])


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeTest:
    """A test of a judge: it is run with the address of a broker."""

    name: str
    run: Callable[[str], Mapping[str, Result]]
    """Returns results by name: of the test, and of its parts if it reports them."""
    creates_topics: bool = True
    """Whether it needs a broker that creates topics when clients ask for their metadata."""
    denies: bool = False
    """Whether it denies things to itself: nobody may be a super user."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """One test, or a part of one, on both brokers."""

    name: str
    kafka: Result
    here: Result

    @property
    def is_worse_here(self) -> bool:
        return self.kafka.outcome is Outcome.PASSED and self.here.outcome is not Outcome.PASSED


def report(
    judge: str, compared: Sequence[Comparison], exceptions: Mapping[str, str]
) -> dict[str, Any]:
    """Return what a judge says, as JSON. `unexplained` must be empty.

    An exception whose test passes here is reported as well: it must be removed.
    """
    worse = [each for each in compared if each.is_worse_here]
    by_name = {each.name: each for each in compared}
    return {
        "judge": judge,
        "tests": len(compared),
        "passed_on_kafka": _count(compared, lambda each: each.kafka),
        "passed_here": _count(compared, lambda each: each.here),
        "passed_only_here": [
            each.name
            for each in compared
            if each.here.outcome is Outcome.PASSED and each.kafka.outcome is not Outcome.PASSED
        ],
        "not_on_kafka": {
            each.name: each.kafka.outcome
            for each in compared
            if each.kafka.outcome is not Outcome.PASSED
        },
        "exceptions": {
            each.name: exceptions[each.name] for each in worse if each.name in exceptions
        },
        "exceptions_that_pass": [
            name
            for name in exceptions
            if name in by_name and by_name[name].here.outcome is Outcome.PASSED
        ],
        "unexplained": {
            each.name: {"here": each.here.outcome, "output": each.here.output}
            for each in worse
            if each.name not in exceptions
        },
    }


def _count(compared: Sequence[Comparison], side: Callable[[Comparison], Result]) -> int:
    return sum(side(each).outcome is Outcome.PASSED for each in compared)
