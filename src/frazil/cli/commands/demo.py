"""Send the telemetry of a sample shop to a node: nine services with errors, slow paths and an
incident, as logs, traces and metrics that agree with each other."""

from __future__ import annotations

import argparse
import json
import signal
import sys
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from frazil.cli.options import add_json
from frazil.cli.otlp_target import add_target, target_of

if TYPE_CHECKING:
    from frazil.cli.terminal.progress import ProgressLine
    from frazil.demo import Demo, DemoSummary
    from frazil.model import Clock

HELP = "Send the telemetry of a sample shop to a node"
RATE = 20.0
BACKFILL_MINUTES = 15.0
"""A bit longer than the story, so that all of it is visible at once."""
WORDS = {"traces": "spans", "logs": "logs", "metrics": "points"}
"""Signal -> what its records are called."""
NS_PER_S = 1_000_000_000
WINDOW_NS = 11 * NS_PER_S
"""Window of the rates: a bit longer than the interval between metric points."""
FAILED = 1


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_target(parser)
    add = parser.add_argument
    add(
        "--rate",
        type=_above_zero,
        default=RATE,
        metavar="N",
        help="requests per second (20)",
    )
    add("--seconds", type=_above_zero, metavar="N", help="duration (default: until Ctrl-C)")
    add("--count", type=int, metavar="N", help="total number of requests, backfill included")
    add(
        "--backfill",
        type=_not_negative,
        metavar="MINUTES",
        help="first send this much of the past at once (default: 15; 0 with --count)",
    )
    add("--seed", type=int, metavar="N", help="random seed; the same seed sends the same shop")
    add_json(parser, "print one JSON object at the end: sent, acknowledged, refused")


def run(options: argparse.Namespace) -> int:
    """Send until the time is over or a signal arrives, then print what was acknowledged."""
    from frazil.cli.terminal.progress import ProgressLine
    from frazil.demo import Demo, DemoPlan
    from frazil.model import Rand, SystemClock, SystemRand
    from frazil.otlp_client import OtlpClient

    clock = SystemClock()
    seed = SystemRand().getrandbits(32) if options.seed is None else options.seed
    backfill = options.backfill
    if backfill is None:
        backfill = BACKFILL_MINUTES if options.count is None else 0.0
    plan = DemoPlan(
        rate=options.rate,
        seconds=options.seconds,
        count=options.count,
        backfill_minutes=backfill,
    )
    target = target_of(options)
    client = OtlpClient(target, clock=clock)
    demo = Demo(plan, client, clock=clock, rand=Rand(seed))
    start_ns = clock.monotonic_ns()
    with ProgressLine("demo", clock=clock, is_quiet=options.json) as progress:
        progress.say(f"Sending a sample shop to {target.url} (--seed {seed}). Ctrl-C stops.")
        try:
            with _stopped_by_signals(demo):
                demo.run(DemoProgress(progress, clock))
        finally:
            client.close()
            progress.close()
            if any(total.acknowledged for total in demo.summary.totals.values()):
                _print_summary(
                    demo.summary, (clock.monotonic_ns() - start_ns) / NS_PER_S, options.json
                )
    return FAILED if any(total.refused for total in demo.summary.totals.values()) else 0


@contextmanager
def _stopped_by_signals(demo: Demo) -> Iterator[None]:
    """The first signal ends the requests, the second one the process."""

    def stop(number: int, _: object) -> None:
        signal.signal(number, signal.default_int_handler)
        demo.stop()

    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class DemoProgress:
    """Shows a summary on one line, with current rates."""

    def __init__(self, progress: ProgressLine, clock: Clock) -> None:
        self._progress = progress
        self._clock = clock
        self._seen: deque[tuple[int, dict[str, int]]] = deque()

    def __call__(self, summary: DemoSummary) -> None:
        now = {name: total.acknowledged for name, total in summary.totals.items()}
        refused = sum(total.refused for total in summary.totals.values())
        parts = [f"{summary.visits:,} requests", self._rates(now), f"{refused:,} refused"]
        if summary.past_share is not None:
            parts.insert(0, f"backfill: {summary.past_share:.0%}")
        if summary.retries:
            parts.append(f"{summary.retries:,} retries")
        if summary.refusal is not None:
            parts.append(summary.refusal)
        self._progress.update(summary.visits, "  ".join(parts))

    def _rates(self, now: dict[str, int]) -> str:
        now_ns = self._clock.monotonic_ns()
        self._seen.append((now_ns, now))
        while now_ns - self._seen[0][0] > WINDOW_NS:
            self._seen.popleft()
        before_ns, before = self._seen[0]
        seconds = max(1.0, (now_ns - before_ns) / NS_PER_S)
        rates = [
            f"{(now[name] - before[name]) / seconds:,.0f} {word}/s" for name, word in WORDS.items()
        ]
        return ", ".join(rates)


def _print_summary(summary: DemoSummary, seconds: float, is_json: bool) -> None:
    if is_json:
        facts: dict[str, object] = {"requests": summary.visits}
        for name, word in WORDS.items():
            total = summary.totals[name]
            facts[word] = {
                "sent": total.sent,
                "acknowledged": total.acknowledged,
                "refused": total.refused,
            }
        print(json.dumps({**facts, "retries": summary.retries, "seconds": round(seconds, 3)}))
        return
    acknowledged = ", ".join(
        f"{summary.totals[name].acknowledged:,} {word}" for name, word in WORDS.items()
    )
    print(f"Sent {summary.visits:,} requests in {seconds:.1f} s. Acknowledged: {acknowledged}.")
    missing = sum(total.sent - total.acknowledged for total in summary.totals.values())
    if missing:
        print(f"Not acknowledged: {missing:,} ({summary.refusal})", file=sys.stderr)


def _above_zero(text: str) -> float:
    number = float(text)
    if not 0 < number < float("inf"):
        raise argparse.ArgumentTypeError(f"{text} must be above 0")
    return number


def _not_negative(text: str) -> float:
    number = float(text)
    if not 0 <= number < float("inf"):
        raise argparse.ArgumentTypeError(f"{text} must not be negative")
    return number
