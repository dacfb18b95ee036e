"""Clients that query all the time, and a prober that measures when the API is back.

While processes die a query may be refused, by a status that says so. A result must be right.
"""

from __future__ import annotations

import http.client
import json
import threading
import time
from collections import Counter, deque
from random import Random
from typing import Any

from tests.clients.node import Node
from tests.torture.processes.load import BASE_NS

ASKERS = 2
ASK_PAUSE_S = 0.05
PROBE_INTERVAL_S = 0.02
PROBE_TIMEOUT_MS = 1000
"""A prober whose worker was stopped asks again after this time."""
TIMEOUT_MS = 2000
ANSWER_S_MAX = 30.0
REFUSALS = frozenset({413, 429, 503})
"""Statuses of queries that lost their worker, or that met no reader."""
COUNTS = "SELECT count(*), count(DISTINCT concat(service_name, _offset, '/', _row)) FROM logs"
QUESTIONS = (
    COUNTS,
    "SELECT count(*), count(DISTINCT concat(service_name, time_unix_nano)) FROM logs",
    "SELECT count(*), sum(CASE WHEN n = 1 THEN 1 ELSE 0 END) FROM (SELECT row_number() OVER "
    "(PARTITION BY service_name, time_unix_nano ORDER BY _offset) AS n FROM logs "
    f"WHERE time_unix_nano < {BASE_NS + 20_000})",
)
"""Queries for a number of rows and of distinct ones, which must be equal."""


class Refused(Exception):
    """The API has not answered with rows. A status that is None: the connection broke."""

    def __init__(self, status: int | None, message: str) -> None:
        super().__init__(f"{status}: {message}")
        self.status = status


def ask(node: Node, text: str, timeout_ms: int) -> list[list[Any]]:
    """Return the rows of a query. Raises `Refused`."""
    connection = http.client.HTTPConnection("127.0.0.1", node.api_port, timeout=ANSWER_S_MAX)
    try:
        body = json.dumps({"sql": text, "timeout_ms": timeout_ms})
        connection.request("POST", "/api/v1/sql", body, {"Content-Type": "application/json"})
        response = connection.getresponse()
        answer = response.read()
    except TimeoutError as error:
        raise Refused(0, f"no answer within {ANSWER_S_MAX:g} s") from error
    except (OSError, http.client.HTTPException) as error:
        raise Refused(None, repr(error)) from error
    finally:
        connection.close()
    if response.status != http.HTTPStatus.OK:
        raise Refused(response.status, answer.decode(errors="replace")[:300])
    rows: list[list[Any]] = json.loads(answer)["rows"]
    return rows


def is_ready(node: Node) -> bool:
    """Return what the node's own readiness probe says."""
    connection = http.client.HTTPConnection("127.0.0.1", node.api_port, timeout=ANSWER_S_MAX)
    try:
        connection.request("GET", "/readyz")
        return connection.getresponse().status == http.HTTPStatus.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


class Asking:
    """The askers. A count that was seen once must never be smaller later."""

    def __init__(self, node: Node, seed: int) -> None:
        self.fired = Counter[str]()
        self.problems: deque[tuple[str, str]] = deque(maxlen=1000)
        """(anomaly, example)."""
        self._node = node
        self._lock = threading.Lock()
        self._seen = 0
        self._stop = threading.Event()
        self._threads = [
            threading.Thread(target=self._run, args=(Random(f"{seed} {number}"),))
            for number in range(ASKERS)
        ]
        for thread in self._threads:
            thread.start()

    def _run(self, chance: Random) -> None:
        while not self._stop.wait(ASK_PAUSE_S):
            text = chance.choice(QUESTIONS)
            before = self._seen
            try:
                ((count, distinct),) = ask(self._node, text, TIMEOUT_MS)
            except Refused as refused:
                self._take_refusal(refused, text)
                continue
            with self._lock:
                self.fired["asked"] += 1
                if count != (distinct or 0):
                    self.problems.append(("duplicate", f"{count} rows, {distinct} distinct"))
                if text == COUNTS and count < before:
                    self.problems.append(("retracted", f"{count} rows, {before} earlier"))
                if text == COUNTS:
                    self._seen = max(self._seen, count)

    def _take_refusal(self, refused: Refused, text: str) -> None:
        with self._lock:
            self.fired[f"refused_{refused.status or 'broken'}"] += 1
            if refused.status is not None and refused.status not in REFUSALS:
                self.problems.append(("untrue", f"{refused} for {text}"))

    def stop(self) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()


def seconds_until_back(node: Node, begin: float, give_up_s: float) -> float | None:
    """Ask until the node is ready and a query that was sent after `begin` returns rows. Returns the
    seconds since then; None if that takes longer than `give_up_s`."""
    while time.monotonic() - begin < give_up_s:
        try:
            if is_ready(node) and ask(node, "SELECT 1", PROBE_TIMEOUT_MS) == [[1]]:
                return time.monotonic() - begin
        except Refused:
            pass
        time.sleep(PROBE_INTERVAL_S)
    return None
