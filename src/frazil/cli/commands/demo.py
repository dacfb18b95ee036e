"""Send the telemetry of a small shop to a node: nine services, with errors, slow paths and an
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

HELP = "send the telemetry of a small shop to a node"
RATE = 20.0
BACKFILL_MINUTES = 15.0
"""A bit more than the story takes, so that all of it can be seen at once."""
WORDS = {"traces": "spans", "logs": "logs", "metrics": "points"}
"""Signal -> what its records are called here."""
NS_PER_S = 1_000_000_000
WINDOW_NS = 11 * NS_PER_S
"""What rates are of: a bit more than from one point of a series to the next."""
FAILED = 1


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_target(parser)
    add = parser.add_argument
    add("--rate", type=_above_zero, default=RATE, metavar="N", help="requests a second (20)")
    add("--seconds", type=_above_zero, metavar="N", help="how long; until Ctrl-C without")
    add("--count", type=int, metavar="N", help="requests in all, also those of the past")
    add(
        "--backfill",
        type=_not_negative,
        metavar="MINUTES",
        help="first send so much of the past, at once (15; with --count 0)",
    )
    add("--seed", type=int, metavar="N", help="the same shop again; any without")
    add_json(parser, "one line of JSON at the end: what was sent, acknowledged, refused")


def run(options: argparse.Namespace) -> int:
    """Send until the time is over or somebody says stop; then say what was acknowledged."""
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
    sender = OtlpClient(target, clock=clock)
    demo = Demo(plan, sender, clock=clock, rand=Rand(seed))
    begun_ns = clock.monotonic_ns()
    with ProgressLine("demo", clock=clock, is_quiet=options.json) as progress:
        progress.say(f"A shop sends to {target.url} (--seed {seed}). Ctrl-C ends it.")
        try:
            with _stopped_politely(demo):
                demo.run(DemoProgress(progress, clock))
        finally:
            sender.close()
            progress.close()
            if any(tally.acknowledged for tally in demo.summary.tallies.values()):
                _conclude(demo.summary, (clock.monotonic_ns() - begun_ns) / NS_PER_S, options.json)
    return FAILED if any(tally.refused for tally in demo.summary.tallies.values()) else 0


@contextmanager
def _stopped_politely(demo: Demo) -> Iterator[None]:
    """The first signal ends the visits, the second one everything."""

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
    """Shows a summary as a line, with rates of the last seconds."""

    def __init__(self, progress: ProgressLine, clock: Clock) -> None:
        self._progress = progress
        self._clock = clock
        self._seen: deque[tuple[int, dict[str, int]]] = deque()

    def __call__(self, summary: DemoSummary) -> None:
        now = {name: tally.acknowledged for name, tally in summary.tallies.items()}
        refused = sum(tally.refused for tally in summary.tallies.values())
        parts = [f"{summary.visits:,} requests", self._rates(now), f"{refused:,} refused"]
        if summary.past_share is not None:
            parts.insert(0, f"the past: {summary.past_share:.0%}")
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


def _conclude(summary: DemoSummary, seconds: float, is_json: bool) -> None:
    if is_json:
        facts: dict[str, object] = {"requests": summary.visits}
        for name, word in WORDS.items():
            tally = summary.tallies[name]
            facts[word] = {
                "sent": tally.sent,
                "acknowledged": tally.acknowledged,
                "refused": tally.refused,
            }
        print(json.dumps({**facts, "retries": summary.retries, "seconds": round(seconds, 3)}))
        return
    acknowledged = ", ".join(
        f"{summary.tallies[name].acknowledged:,} {word}" for name, word in WORDS.items()
    )
    print(
        f"{summary.visits:,} requests of the shop in {seconds:.1f} s. Acknowledged: {acknowledged}."
    )
    missing = sum(tally.sent - tally.acknowledged for tally in summary.tallies.values())
    if missing:
        print(f"Not acknowledged: {missing:,} ({summary.refusal})", file=sys.stderr)


def _above_zero(text: str) -> float:
    number = float(text)
    if not 0 < number < float("inf"):
        raise argparse.ArgumentTypeError(f"{text} is not above 0")
    return number


def _not_negative(text: str) -> float:
    number = float(text)
    if not 0 <= number < float("inf"):
        raise argparse.ArgumentTypeError(f"{text} is negative")
    return number
