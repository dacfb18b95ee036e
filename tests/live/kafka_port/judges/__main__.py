"""Runs the judges. Prints one JSON object per judge; exits with 1 if a test passes on Kafka and
fails here without being named in `exceptions.py`."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

from tests.live.kafka_port.judges import franz_go, kafka_tools, librdkafka
from tests.live.kafka_port.judges.exceptions import EXCEPTIONS
from tests.live.kafka_port.judges.outcomes import Comparison, JudgeTest, Outcome, Result, report
from tests.live.kafka_port.judges.servers import Servers, both

JUDGES: dict[str, Callable[[], list[JudgeTest]]] = {
    "librdkafka": librdkafka.tests,
    "franz-go": franz_go.tests,
    "kafka-tools": kafka_tools.tests,
}
JOBS = 2
"""Tests at the same time, each on both brokers: they wait more than they work."""
ATTEMPTS = 3
"""How often a test may fail before it counts: some of them race with time. 0115 fails if a broker
answers before a thread of librdkafka goes on."""
DID_NOT_RUN = Result(outcome=Outcome.SKIPPED, output="it did not run")


def main(words: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.live.kafka_port.judges")
    parser.add_argument("judges", nargs="*", help=f"default: all of {', '.join(JUDGES)}")
    parser.add_argument("--tests", nargs="+", default=[], help="parts of the names of tests")
    parser.add_argument("--jobs", type=int, default=JOBS, help="tests at the same time")
    options = parser.parse_args(words)
    unknown = set(options.judges) - set(JUDGES)
    if unknown:
        parser.error(f"unknown: {', '.join(sorted(unknown))}; there are {', '.join(JUDGES)}")
    is_fine = True
    for judge in options.judges or JUDGES:
        chosen = [
            test
            for test in JUDGES[judge]()
            if not options.tests or any(part in test.name for part in options.tests)
        ]
        compared = list(compare(chosen, options.jobs))
        found = report(judge, compared, EXCEPTIONS[judge])
        sys.stdout.write(json.dumps(found, indent=2) + "\n")
        sys.stdout.flush()
        is_fine = is_fine and not found["unexplained"]
    return 0 if is_fine else 1


def compare(tests: Sequence[JudgeTest], jobs: int) -> Iterator[Comparison]:
    """Run tests on both brokers, some at the same time."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        servers = {
            needed: stack.enter_context(
                both(folder / str(number), creates_topics=needed[0], has_super_user=not needed[1])
            )
            for number, needed in enumerate(sorted({_needs(test) for test in tests}))
        }
        pool = stack.enter_context(ThreadPoolExecutor(jobs))
        runs = [pool.submit(_on_both, test, servers[_needs(test)]) for test in tests]
        for run in runs:
            yield from run.result()


def _needs(test: JudgeTest) -> tuple[bool, bool]:
    return test.creates_topics, test.denies


def _on_both(test: JudgeTest, servers: Servers) -> list[Comparison]:
    """Run a test on Kafka, then here."""
    kafka, here = (_results(test, address) for address in (servers.kafka, servers.here))
    found = [
        Comparison(name=name, kafka=kafka.get(name, DID_NOT_RUN), here=here.get(name, DID_NOT_RUN))
        for name in dict.fromkeys([*kafka, *here])
    ]
    for each in found:
        sys.stderr.write(f"{each.name}: Kafka {each.kafka.outcome}, here {each.here.outcome}\n")
    return found


def _results(test: JudgeTest, address: str) -> dict[str, Result]:
    results: dict[str, Result] = {}
    for _ in range(ATTEMPTS):
        for name, result in test.run(address).items():
            if name not in results or result.outcome is Outcome.PASSED:
                results[name] = result
        if all(result.outcome is not Outcome.FAILED for result in results.values()):
            break
    return results


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
