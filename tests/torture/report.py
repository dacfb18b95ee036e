"""The report of one torture run, and when it counts as proof."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field

from tests.torture.checker import ANOMALIES, Verdict

ANSWER_S_MAX = 300
"""A worker process that has not returned by then is treated as dead."""


@dataclass(slots=True)
class Report:
    """The result of one run of one kind."""

    kind: str
    seed: int
    cycles: int = 0
    verdict: Verdict = field(default_factory=Verdict)
    faults: Counter[str] = field(default_factory=Counter)
    must_fire: tuple[str, ...] = ()
    skipped: str = ""

    def take(self, verdict: Verdict, faults: Counter[str], where: str) -> None:
        self.cycles += 1
        self.verdict.merge(verdict, where)
        self.faults += faults

    @property
    def silent(self) -> list[str]:
        """Required faults that never fired: the run proves nothing about them."""
        return [fault for fault in self.must_fire if not self.faults[fault]]

    @property
    def is_valid(self) -> bool:
        return not self.skipped and self.verdict.is_valid and not self.silent

    def as_json(self) -> str:
        facts: dict[str, object] = {"kind": self.kind, "valid": self.is_valid}
        if self.skipped:
            facts |= {"valid": None, "skipped": self.skipped}
        if self.silent:
            facts["inconclusive"] = f"never fired: {', '.join(self.silent)}"
        facts |= {anomaly: self.verdict.counts[anomaly] for anomaly in ANOMALIES}
        facts |= {"faults": dict(sorted(self.faults.items()))}
        facts |= {"cycles": self.cycles, "seed": self.seed}
        if self.verdict.examples:
            facts["examples"] = self.verdict.examples
        return json.dumps(facts)
