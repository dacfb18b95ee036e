"""Compare our answers with those of a real Prometheus that has received the same OTLP.

    python -m tests.live.prometheus.compare [--queries 520] [--seed 24]

Each query is asked three times: with all rows in the hot tier, with half of them in the lake, and
with all of them there. Exits 1 if an answer differs.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from frazil.errors import Rejected
from frazil.languages import (
    KnownLabels,
    MetricDirectory,
    TablePointSource,
    answer_pieces,
    evaluate_range,
)
from frazil.model import SystemClock
from tests.live.prometheus.answers import differences
from tests.live.prometheus.generated_queries import RangeQuery, range_queries
from tests.live.prometheus.server import RealPrometheus, real_prometheus
from tests.live.prometheus.telemetry import STEP_MS, STEPS, requests
from tests.query.both_tiers import World, both_tiers

TOPIC = "otlp_metrics"
AGE_MS = STEP_MS * STEPS + 600_000
"""How long ago the first point is, so that the last one is not in the future."""
SHOWN_MAX = 10


def stages(folder: Path, bodies: list[bytes]) -> Iterator[tuple[str, World]]:
    """Yield where the rows are, and the tables with them."""
    with both_tiers(folder, topics=(TOPIC,)) as world:
        _put(world, bodies[: len(bodies) // 2])
        _put(world, bodies[len(bodies) // 2 :])
        world.seal()
        yield "hot", world
    with both_tiers(folder.with_name("lake"), topics=(TOPIC,)) as world:
        _put(world, bodies[: len(bodies) // 2])
        world.flush()
        _put(world, bodies[len(bodies) // 2 :])
        yield "seam", world
        world.flush()
        yield "lake", world


def _put(world: World, bodies: list[bytes]) -> None:
    for body in bodies:
        world.put(TOPIC, body)
    world.show()


class OurAnswers:
    """Evaluates over the tables of a world."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._directory, self._known = MetricDirectory(SystemClock()), KnownLabels()

    def of(self, query: RangeQuery) -> Any:
        """Return an answer as clients read it."""
        source = TablePointSource(self._ask, self._directory, self._known, lambda: None)
        answer = evaluate_range(query.text, source, query.start_ms, query.end_ms, query.step_ms)
        return json.loads(b"{" + b"".join(answer_pieces(answer, 0)) + b"}")

    def _ask(self, text: str) -> pa.Table:
        with self._world.engine.sql(text) as result:
            return result.arrow()


def their_answer(prometheus: RealPrometheus, query: RangeQuery) -> Any:
    return prometheus.ask(
        "query_range",
        query=query.text,
        start=query.start_ms / 1000,
        end=query.end_ms / 1000,
        step=query.step_ms / 1000,
    )


def outcome(ours: OurAnswers, query: RangeQuery, theirs: Any) -> tuple[str, list[str]]:
    """Return how an answer compares: equal, empty on both sides, an error on both, or different."""
    try:
        found = ours.of(query)
    except Rejected as error:
        if theirs["status"] == "error":
            return "error", []
        return "different", [f"error: {error}"]
    if theirs["status"] == "error":
        return "different", [f"no error, but Prometheus: {theirs['error']}"]
    different = differences(found, theirs["data"])
    if different:
        return "different", different
    return ("equal" if found["result"] else "empty"), []


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--queries", type=int, default=520)
    parser.add_argument("--seed", type=int, default=24)
    given = parser.parse_args()
    begin_ms = SystemClock().wall_ms() // STEP_MS * STEP_MS - AGE_MS
    queries = range_queries(begin_ms, given.queries, given.seed)
    bodies = list(requests(begin_ms, given.seed))
    failed = 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with real_prometheus(folder / "prometheus") as prometheus:
            for body in bodies:
                prometheus.send(body)
            theirs = [their_answer(prometheus, query) for query in queries]
        for stage, world in stages(folder / "hot", bodies):
            failed += compare_stage(stage, OurAnswers(world), queries, theirs)
    return 1 if failed else 0


def compare_stage(
    stage: str, ours: OurAnswers, queries: list[RangeQuery], theirs: list[Any]
) -> int:
    """Print how the answers compare; return how many differ."""
    counts: Counter[str] = Counter()
    for query, their in zip(queries, theirs, strict=True):
        what, why = outcome(ours, query, their)
        counts[what] += 1
        if what == "different" and counts[what] <= SHOWN_MAX:
            sys.stdout.write("\n    ".join([f"{stage}: {query}", *why[:3]]) + "\n")
    sys.stdout.write(f"{stage}: {len(queries)} queries: {dict(counts)}\n")
    sys.stdout.flush()
    return counts["different"]


if __name__ == "__main__":
    sys.exit(main())
