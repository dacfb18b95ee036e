"""python -m tests.fuzz --kind wire --count 100000 --seed 1 --jobs 2

`otlp` is all kinds but `sql`, `statements`, `kafka_wire` and `kafka`. Prints a JSON line last, and
exits with 1 on a disagreement. A crash of this process or of one of its parts ends the run with an
error.
"""

from __future__ import annotations

import argparse
import importlib
import json
import sys
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from typing import Any

OTLP = ("wire", "json", "decode", "encode")
KINDS = (*OTLP, "sql", "statements", "kafka_wire", "kafka")
PART_COUNT_MAX = 100_000
"""Maximum bodies or texts per part of a run. Each part has its own seed, and so its own corpus."""
SEED_STRIDE = 1_000_003
"""Keeps the seeds of parts distinct between runs with adjacent seeds."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz")
    parser.add_argument("--kind", choices=(*KINDS, "otlp"), default="otlp")
    parser.add_argument("--count", type=int, default=PART_COUNT_MAX)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    kinds = OTLP if options.kind == "otlp" else (options.kind,)
    results = {kind: fuzz(kind, options.count, options.seed, options.jobs) for kind in kinds}
    line = results if options.kind == "otlp" else results[options.kind]
    sys.stdout.write(json.dumps({"kind": options.kind, "seed": options.seed, **line}) + "\n")
    return 1 if any(result["disagreements"] for result in results.values()) else 0


def fuzz(kind: str, count: int, seed: int, jobs: int) -> dict[str, object]:
    """Run one kind in parts, and add up their results."""
    begin = time.monotonic()
    size = max(1, min(PART_COUNT_MAX, -(-count // jobs)))
    counts = [min(size, count - at) for at in range(0, count, size)]
    total: dict[str, object] = {"disagreements": []}
    with ProcessPoolExecutor(jobs) as pool:
        parts = [
            pool.submit(run_part, kind, part_count, seed * SEED_STRIDE + number)
            for number, part_count in enumerate(counts)
        ]
        for number, part in enumerate(as_completed(parts), 1):
            total = add(total, part.result())
            seconds = time.monotonic() - begin
            sys.stderr.write(f"{kind}: {number} of {len(parts)} parts, {seconds:.0f} s\n")
    return total | {"seconds": round(time.monotonic() - begin, 1)}


def run_part(kind: str, count: int, seed: int) -> dict[str, object]:
    result: dict[str, object] = importlib.import_module(f"tests.fuzz.{kind}").run(count, seed)
    return result


def add(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    """Add numbers and concatenate lists, recursively in dicts."""
    total = dict(one)
    for name, value in other.items():
        match total.get(name), value:
            case None, _:
                total[name] = value
            case dict() as mine, dict():
                total[name] = add(mine, value)
            case (int() | list()) as mine, _:
                total[name] = mine + value
    return total


if __name__ == "__main__":
    sys.exit(main())
