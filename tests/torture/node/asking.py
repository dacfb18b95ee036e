"""Questions and flushes all the time, and what their answers must be.

A node that is down, or that has lost a child, may refuse. Whatever it answers must be true: no row
twice, no request by half, nothing missing that was seen before, or that a flush has promised.

A node that has just started reads again what was not sealed, and says so in its status until it
has all of it. Up to then an answer is compared with those of the same life only.
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
"""Of the first flush, about: Spark starts."""
TABLES = {Signal.LOGS: "logs", Signal.TRACES: "spans", Signal.METRICS: "metrics"}
NUMBERED = f"WHERE service_name = '{SERVICE}'"
REQUEST_ROWS_MAX = 2**20
"""Rows of a request, at most: so that a place can be written as one number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """Asks for the number of rows, and of different ones among them: they must be the same."""

    text: str
    about: str
    """Which rows: answers about the same ones are compared."""


QUESTIONS = {
    "numbered": Question(
        text=f"SELECT count(*), count(DISTINCT attributes['{ID}']) FROM {{}} {NUMBERED}",
        about="numbered",
    ),
    "everything": Question(
        text=f"SELECT count(*), count(DISTINCT _offset * {REQUEST_ROWS_MAX} + _row) FROM {{}}",
        about="everything",
    ),
    "apart": Question(  # the engine runs windows in a process of their own
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
    """Which life the node is in. Written by the story, read by all."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.number = 0
        """Raised before a process is started, so that an answer belongs to one life if this is the
        same before and after."""
        self.harm_count = 0
        """Raised when an act begins, and when it has ended: in between it is odd."""

    @property
    def is_calm(self) -> bool:
        """Is the node up, and nobody harms it?"""
        return self.harm_count % 2 == 0


class Asking:
    """Those who ask, each in a thread, and one who flushes. Owned by the story."""

    def __init__(self, lives: Lives, ledger: Ledger, seed: int) -> None:
        self._lives = lives
        self._ledger = ledger
        self._whole_life = -1
        self._floors: dict[tuple[int, str, str], int] = {}
        """Rows that were seen, by life, table and which ones; the life -1 stands for all."""
        self._lock = threading.Lock()
        self.fired = Counter[str]()
        self.problems: deque[tuple[str, str]] = deque(maxlen=1000)
        """Anomaly and example."""
        self.refusals = Counter[str]()
        """What was said by a node that nobody had harmed."""
        self.flush_s = FLUSH_S
        """How long the last flush took."""
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
        """Ask for a flush, without waiting."""
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
            self.problems.append(("retracted", f"{what}, {lately} before in this life"))
        elif rows < ever and is_whole:
            self.problems.append(("retracted", f"{what}, {ever} were promised or seen"))
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
            self.problems.append(("hole", f"{what}: half a request"))

    def _raise_floor(self, life: int, table: str, about: str, rows: int) -> None:
        with self._lock:
            key = (life, table, about)
            self._floors[key] = max(self._floors.get(key, 0), rows)

    def _refused(self, what: str, error: FrazilError, harm: int) -> None:
        """Refusals are the answer of a node that is harmed; others must not get any."""
        is_harmed = not self._lives.is_calm or self._lives.harm_count != harm
        may_be = isinstance(error, Unavailable | Overloaded)
        # What a query says whose own process was killed, mostly by a system that has no memory.
        may_be |= is_harmed and isinstance(error, TooLarge) and "(code -9)" in str(error)
        if not may_be:
            self.problems.append(("untrue", f"{what}: {type(error).__name__}: {error}"))
        self._count(**{f"refused_{what}": 1})
        if not is_harmed:
            with self._lock:
                self.refusals[f"{what}: {type(error).__name__}: {str(error)[:300]}"] += 1

    def _count(self, **counts: int) -> None:
        with self._lock:
            self.fired.update(counts)
