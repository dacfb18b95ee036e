"""Continuous queries and flushes, and checks of their results.

A node that is down or has lost a child process may refuse. Every result must be correct: no row
twice, no partial request, no row missing that was seen earlier or that a flush has committed.

A node that has just started replays unsealed rows, and its status says so until it is done. Until
then a result is compared only with results of the same life.
"""

from __future__ import annotations

import threading
import time
from collections import Counter, deque
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from random import Random

import frazil
from frazil.client import Client
from frazil.errors import FrazilError, Overloaded, TooLarge, Unavailable
from frazil.model import Signal
from tests.torture.node.load import ID, ROWS, SERVICE, Ledger

ASKING = 2
ASK_PAUSE_S = 0.15
FLUSH_S = 12.0
"""About the duration of the first flush, which starts Spark."""
TABLES = {Signal.LOGS: "logs", Signal.TRACES: "spans", Signal.METRICS: "metrics"}
NUMBERED = f"WHERE service_name = '{SERVICE}'"
REQUEST_ROWS_MAX = 2**20
"""Maximum rows per request, so that offset and row fit into one number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A query for the number of rows and of distinct rows; both must be equal."""

    text: str
    about: str
    """The set of rows; results about the same set are compared."""


QUESTIONS = {
    "numbered": Question(
        text=f"SELECT count(*), count(DISTINCT attributes['{ID}']) FROM {{}} {NUMBERED}",
        about="numbered",
    ),
    "everything": Question(
        text=f"SELECT count(*), count(DISTINCT _offset * {REQUEST_ROWS_MAX} + _row) FROM {{}}",
        about="everything",
    ),
    "window": Question(
        text="SELECT count(*), coalesce(sum(CASE WHEN n = 1 THEN 1 ELSE 0 END), 0) FROM (SELECT "
        f"row_number() OVER (PARTITION BY attributes['{ID}'] ORDER BY _offset) AS n "
        f"FROM {{}} {NUMBERED})",
        about="numbered",
    ),
}
SNAPSHOTS = "SELECT snapshot_id FROM snapshots WHERE table_name = '{}'"
AS_OF = "{} FOR SYSTEM_VERSION AS OF {}"
SNAPSHOT_CHANCE = 0.15


class Lives:
    """The current life of the node. Written by the run's thread, read by all threads."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.number = 0
        """Incremented before a process is started. A result belongs to one life if this is equal
        before and after the query."""
        self.harm_count = 0
        """Incremented at the beginning and at the end of an act: odd during an act."""

    @property
    def is_calm(self) -> bool:
        """True when the node is up and no act is running."""
        return self.harm_count % 2 == 0


class Asking:
    """Query threads and one flush thread. Owned by the run's thread."""

    def __init__(self, lives: Lives, ledger: Ledger, seed: int) -> None:
        self._lives = lives
        self._ledger = ledger
        self._whole_life = -1
        self._floors: dict[tuple[int, str, str], int] = {}
        """Minimum row counts by (life, table, set of rows); life -1 covers all lives."""
        self._lock = threading.Lock()
        self.fired = Counter[str]()
        self.problems: deque[tuple[str, str]] = deque(maxlen=1000)
        """(anomaly, example)."""
        self.refusals = Counter[str]()
        """Refusals while no act was running."""
        self.flush_s = FLUSH_S
        """Duration of the last flush."""
        self._stop = threading.Event()
        self._pool = ThreadPoolExecutor(ASKING + 1)
        self._work = [
            self._pool.submit(self._run, Random(f"{seed} {number}")) for number in range(ASKING)
        ]

    def stop(self) -> None:
        self._stop.set()
        for work in self._work:
            work.result()
        self._pool.shutdown()

    def flush(self) -> Future[None]:
        """Start a flush without waiting for it."""
        return self._pool.submit(self._flush)

    def maintain(self) -> Future[None]:
        return self._pool.submit(self._maintain)

    def _flush(self) -> None:
        begun = time.monotonic()
        promised = {signal: self._ledger.acknowledged_rows(signal) for signal in Signal}
        life, harm = self._lives.number, self._lives.harm_count
        try:
            done = frazil.connect(self._lives.url).flush()
        except FrazilError as error:
            self._refused("flush", error, harm)
            return
        for signal, rows in promised.items():
            for floor_of in (-1, life):
                self._raise_floor(floor_of, TABLES[signal], "numbered", rows)
        self._count(flushes=1, commits=len(done))
        self.flush_s = time.monotonic() - begun

    def _maintain(self) -> None:
        harm = self._lives.harm_count
        try:
            frazil.connect(self._lives.url).maintain()
        except FrazilError as error:
            self._refused("maintain", error, harm)
            return
        self._count(maintained=1)

    def _run(self, chance: Random) -> None:
        remote = frazil.connect(self._lives.url)
        while not self._stop.wait(ASK_PAUSE_S):
            table = chance.choice(sorted(TABLES.values()))
            life, harm = self._lives.number, self._lives.harm_count
            try:
                if chance.random() < SNAPSHOT_CHANCE:
                    self._ask_snapshot(remote, table, chance)
                else:
                    self._ask(remote, table, chance.choice(sorted(QUESTIONS)), life)
            except FrazilError as error:
                self._refused("sql", error, harm)

    def _ask(self, remote: Client, table: str, name: str, life: int) -> None:
        question = QUESTIONS[name]
        if self._whole_life != life and remote.get("/api/v1/status")["hot"]["is_whole"]:
            self._whole_life = max(self._whole_life, life)
        is_whole = self._whole_life == life
        ever, lately = (self._floors.get((of, table, question.about), 0) for of in (-1, life))
        ((rows, different),) = remote.sql(question.text.format(table)).fetchall()
        self._count(**{"asked": 1, f"asked_{name}": 1})
        what = f"{table}, {name}, life {life}: {rows} rows, {different} different"
        self._check_once(rows, different, what, question.about)
        if self._lives.number != life:
            return
        if rows < lately:
            self.problems.append(("retracted", f"{what}, {lately} earlier in this life"))
        elif rows < ever and is_whole:
            self.problems.append(("retracted", f"{what}, {ever} were committed or seen"))
        elif rows < ever:
            self._count(answers_while_catching_up=1)
        for floor_of in (-1, life):
            self._raise_floor(floor_of, table, question.about, rows)

    def _ask_snapshot(self, remote: Client, table: str, chance: Random) -> None:
        snapshots = [row[0] for row in remote.sql(SNAPSHOTS.format(table)).fetchall()]
        if not snapshots:
            return
        at = chance.choice(snapshots)
        text = QUESTIONS["numbered"].text.format(AS_OF.format(table, at))
        ((rows, different),) = remote.sql(text).fetchall()
        self._check_once(rows, different, f"{table} at {at}: {rows}, {different}", "numbered")
        self._count(asked=1, asked_snapshot=1)

    def _check_once(self, rows: int, different: int, what: str, about: str) -> None:
        if rows != different:
            self.problems.append(("duplicate", what))
        if about == "numbered" and rows % ROWS:
            self.problems.append(("hole", f"{what}: a partial request"))

    def _raise_floor(self, life: int, table: str, about: str, rows: int) -> None:
        with self._lock:
            key = (life, table, about)
            self._floors[key] = max(self._floors.get(key, 0), rows)

    def _refused(self, what: str, error: FrazilError, harm: int) -> None:
        """Count a refusal. Unexpected errors are anomalies; refusals outside an act are listed."""
        is_harmed = not self._lives.is_calm or self._lives.harm_count != harm
        is_allowed = isinstance(error, Unavailable | Overloaded)
        # The error of a query whose worker process was killed, usually for lack of memory.
        is_allowed |= is_harmed and isinstance(error, TooLarge) and "worker process" in str(error)
        if not is_allowed:
            self.problems.append(("untrue", f"{what}: {type(error).__name__}: {error}"))
        self._count(**{f"refused_{what}": 1})
        if not is_harmed:
            with self._lock:
                self.refusals[f"{what}: {type(error).__name__}: {str(error)[:300]}"] += 1

    def _count(self, **counts: int) -> None:
        with self._lock:
            self.fired.update(counts)
