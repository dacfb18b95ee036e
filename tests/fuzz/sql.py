"""Fuzzes SQL: real query workers over a small folder; each text ends with rows or a clear error.

A text may be slow, large or deadly for its worker. Then its client gets the documented error,
within a second after the timeout, and the next text runs as if nothing had happened:

ok                                        rows
malformed, unknown, rejected, too_large   errors that say what is wrong with the text
no_lake                                   it asks for an older version of a table
panicked                                  DataFusion gave up on it
out_of_memory, timed_out                  its worker was killed and replaced
worker_died                               its worker ended by itself and was replaced

Everything else is a disagreement: another error, a late answer, a wrong answer to a known query, an
append to the log that is not acknowledged, a worker that outlives its query, growing memory.
"""

from __future__ import annotations

import re
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any

from frazil.config import load
from frazil.demo import Traffic
from frazil.disk import RealDisk
from frazil.embedded import Embedded
from frazil.errors import FrazilError, Malformed, Rejected, TooLarge, Unavailable, Unknown
from frazil.log import Log, Record, append_of_records
from frazil.model import MiB, Signal, SystemClock, SystemRand
from frazil.query.run.fork_client import FORK_SERVER
from tests.fuzz.sql_texts import corpus, fuzzed_texts
from tests.query.hostile_run import private_bytes

THREADS = 4
"""Texts at a time. One that waits for its timeout holds up a quarter of them."""
TIMEOUT_MS = 1000
LATE_S_MAX = 1.0
"""How long after its timeout a text may be answered, and its worker may live."""
ACK_S_MAX = 5.0
ACK_INTERVAL_S = 0.05
LOADING_TRIES_MAX = 200
WATCH_INTERVAL_S = 0.2
GROWTH_BYTES_MAX = 96 * MiB
"""Of this process, after the first texts; what is loaded at the first use, and caches."""
WARM_COUNT = 2000
"""Texts after which the memory of this process is measured first."""
CHECK_EVERY = 500
"""Texts between two known queries."""
EXAMPLES_MAX = 5
EXAMPLE_LENGTH = 400
MESSAGE_LENGTH_MAX = 4000
TRAFFIC_S = 3
SETTINGS = (
    "lake.enabled=false",
    f"query.timeout_ms={TIMEOUT_MS}",
    f"query.concurrency_max={2 * THREADS}",
    f"query.memory_bytes_max={64 * MiB}",
    "query.rows_max=1000",
)
PROBES = "probes"
"""A topic for appends while texts run."""
KNOWN = "SELECT count(*), count(DISTINCT _offset), min(body), max(body) FROM logs"
WARM = "SELECT count(*) FROM logs WHERE matches(body, 'a') OR get_json_object(body, '$.a') = 'b'"
"""Takes long in a worker that was forked before everything was loaded."""
NO_ERROR_OF_OURS = re.compile(r"Traceback|backtrace:|\bbug in|^\s*$")
OUTCOMES = (
    *("ok", "malformed", "unknown", "rejected", "too_large", "no_lake", "panicked"),
    *("out_of_memory", "timed_out", "worker_died"),
)
TOO_LARGE = {
    "query.timeout_ms": "timed_out",
    "its worker process ended": "worker_died",
    "the query engine failed": "panicked",
    "query.memory_bytes_max": "out_of_memory",
    "query.workers_memory_bytes_max": "out_of_memory",
}
"""Text in a message of `TooLarge` -> outcome."""


def run(count: int, seed: int, *, is_timed: bool = True) -> dict[str, object]:
    """Run `count` texts. Same seed, same texts. `is_timed`: what is late is a disagreement; it says
    nothing on a machine that is busy with other work."""
    with tempfile.TemporaryDirectory() as scratch, opened(Path(scratch), seed) as (log, embedded):
        fuzz = SqlFuzz(embedded, fuzzed_texts(count, seed, corpus()), is_timed=is_timed)
        probe, watch = Probe(log), WorkerWatch(embedded)
        fuzz.run()
        late = watch.stop()
        disagreements = [*fuzz.disagreements, *probe.stop(), *(late if is_timed else ())]
    return {
        "texts": count,
        **{outcome: fuzz.outcomes[outcome] for outcome in OUTCOMES},
        "acknowledged": probe.count,
        "slowest_ms": [int(fuzz.slowest_s * 1000)],
        "growth_mib": [fuzz.growth_bytes // MiB],
        "examples": {outcome: found[:EXAMPLES_MAX] for outcome, found in fuzz.examples.items()},
        "disagreement_count": len(disagreements),
        "disagreements": disagreements[:EXAMPLES_MAX],
    }


@contextmanager
def opened(folder: Path, seed: int) -> Iterator[tuple[Log, Embedded]]:
    """Open a folder with some seconds of demo traffic, and wait until its workers are loaded."""
    clock, rand, disk = SystemClock(), SystemRand(), RealDisk(str(folder))
    config = load(None, {"data": str(folder)}, assignments=SETTINGS)
    with Log.open(disk, config.log, clock=clock, rand=rand) as log:
        for name in (PROBES, *(signal.topic for signal in Signal)):
            log.create_topic(name)
        topics = {signal.path.rpartition("/")[2]: signal.topic for signal in Signal}
        begin_ns = clock.wall_ms() * 10**6
        traffic = Traffic(Random(seed), start_ns=begin_ns, rate=2.0)
        exports = [*traffic.advance(begin_ns + TRAFFIC_S * 10**9), *traffic.flush()]
        for export in exports:
            append(log, topics[export.signal], export.body)
        with Embedded.over(log, disk, config, clock=clock) as embedded:
            embedded.catch_up()
            for _ in range(LOADING_TRIES_MAX):  # what workers are forked from is loading
                outcome, message = outcome_of(embedded, WARM)
                if outcome == "ok":
                    break
                time.sleep(0.1)
            assert outcome == "ok", message
            yield log, embedded


def append(log: Log, topic: str, body: bytes) -> None:
    record = Record(offset=0, timestamp_ms=1, key=None, value=body)
    log.append(topic, append_of_records([record])).result(ACK_S_MAX)


def outcome_of(embedded: Embedded, text: str) -> tuple[str, str]:
    """Run a text and read all its rows. Returns the outcome and the message."""
    try:
        with embedded.sql(text) as result:
            for _ in result:
                pass
    except FrazilError as error:
        message = str(error)
        if NO_ERROR_OF_OURS.search(message) or len(message) > MESSAGE_LENGTH_MAX:
            return f"unclear {type(error).__name__}", message
        return kind_of(error), message
    except Exception as error:  # noqa: BLE001 # any other error is a disagreement
        return f"internal {type(error).__name__}", str(error)
    return "ok", ""


def kind_of(error: FrazilError) -> str:
    """Return the outcome that an error stands for, or its name if it is not one of a text."""
    if isinstance(error, TooLarge):
        found = (kind for part, kind in TOO_LARGE.items() if part in str(error))
        return next(found, "too_large")
    if isinstance(error, Unavailable) and "without a lake" in str(error):
        return "no_lake"
    names = {Malformed: "malformed", Unknown: "unknown", Rejected: "rejected"}
    return names.get(type(error), type(error).__name__)


class SqlFuzz:
    """Threads that take texts in turns. `run` returns when there are no more."""

    def __init__(self, embedded: Embedded, texts: Iterator[str], *, is_timed: bool) -> None:
        self._limit_s = TIMEOUT_MS / 1000 + LATE_S_MAX if is_timed else float("inf")
        self._is_timed = is_timed
        self._embedded = embedded
        self._texts = texts
        self._lock = threading.Lock()
        self._known = embedded.sql(KNOWN).fetchall()
        self._number = 0
        self._base_bytes: int | None = None
        self.outcomes: Counter[str] = Counter()
        self.examples: dict[str, list[str]] = {"worker_died": [], "timed_out": [], "panicked": []}
        self.disagreements: list[str] = []
        self.slowest_s = 0.0
        self.growth_bytes = 0

    def run(self) -> None:
        with ThreadPoolExecutor(THREADS) as pool:
            for work in [pool.submit(self._work) for _ in range(THREADS)]:
                work.result()
        if self._base_bytes is not None:
            self.growth_bytes = private_bytes("self") - self._base_bytes
        if self.growth_bytes > GROWTH_BYTES_MAX:
            self.disagreements.append(f"memory grew by {self.growth_bytes} bytes")

    def _work(self) -> None:
        while (text := self._next()) is not None:
            begin = time.monotonic()
            outcome, message = outcome_of(self._embedded, text)
            self._take(text, outcome, message, time.monotonic() - begin)

    def _next(self) -> str | None:
        with self._lock:
            self._number += 1
            if self._number == WARM_COUNT:
                self._base_bytes = private_bytes("self")
            is_check = self._number % CHECK_EVERY == 0
            text = next(self._texts, None)
        if is_check:
            self._check_known()
        return text

    def _check_known(self) -> None:
        """Ask a query whose rows are known: no text may change what others see."""
        try:
            rows = self._embedded.sql(KNOWN).fetchall()
        except FrazilError as error:
            if kind_of(error) == "timed_out" and not self._is_timed:
                return
            rows = [(f"{type(error).__name__}: {error}",)]
        if rows != self._known:
            with self._lock:
                self.disagreements.append(f"{KNOWN} returned {rows}, not {self._known}")

    def _take(self, text: str, outcome: str, message: str, took_s: float) -> None:
        shown = repr(text if len(text) <= EXAMPLE_LENGTH else f"{text[:EXAMPLE_LENGTH]}...")
        with self._lock:
            self.outcomes[outcome] += 1
            self.slowest_s = max(self.slowest_s, took_s)
            if outcome in self.examples and len(self.examples[outcome]) < EXAMPLES_MAX:
                self.examples[outcome].append(shown)
            if outcome not in OUTCOMES:
                self.disagreements.append(f"{outcome}: {message[:EXAMPLE_LENGTH]}: {shown}")
            if took_s > self._limit_s:
                self.disagreements.append(f"{outcome} after {took_s:.1f} s: {shown}")


class Probe:
    """Appends to the log all the time: every append must be acknowledged."""

    def __init__(self, log: Log) -> None:
        self.count = 0
        self._log = log
        self._failed: list[str] = []
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        while not self._stop.wait(ACK_INTERVAL_S):
            try:
                append(self._log, PROBES, b"%d" % self.count)
            except (FrazilError, TimeoutError) as error:
                self._failed.append(f"append {self.count}: {error!r}")
            self.count += 1

    def stop(self) -> list[str]:
        self._stop.set()
        self._thread.join()
        return self._failed


class WorkerWatch:
    """Watches for worker processes that no query uses any more, and that still live."""

    def __init__(self, embedded: Embedded) -> None:
        self._pool: Any = embedded.engine._workers
        self._unused_since: dict[int, float] = {}
        self._late: dict[int, float] = {}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        while not self._stop.wait(WATCH_INTERVAL_S):
            used = self._used()
            now = time.monotonic()
            unused = (self._running() - used) - self._used()
            self._unused_since = {pid: self._unused_since.get(pid, now) for pid in unused}
            for pid, since in self._unused_since.items():
                if now - since > LATE_S_MAX:
                    self._late[pid] = now - since

    def _used(self) -> set[int]:
        with self._pool._lock:
            return {worker._pid for worker in (*self._pool._idle, *self._pool._busy)}

    def _running(self) -> set[int]:
        process = FORK_SERVER._process
        if process is None:
            return set()
        try:
            children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text()
        except OSError:
            return set()
        return {int(pid) for pid in children.split()}

    def stop(self) -> list[str]:
        self._stop.set()
        self._thread.join()
        return [
            f"worker {pid} lived {seconds:.1f} s after its query"
            for pid, seconds in self._late.items()
        ]
