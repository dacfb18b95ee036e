"""A million rows by ADBC: from a Flight SQL port over real logs, and from a bare Flight server that
has the same batches in memory.

FLIGHT_ROWS is the number of rows (1,000,000), FLIGHT_TIMES how often each is fetched (7); the best
counts, and is from the query's text to its last row, as an Arrow table, with one warm connection.
The difference is what planning, the query's own process and our server cost. Prints one JSON line
last; exits 1 above 0.3 s per million rows.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
from adbc_driver_flightsql import dbapi as adbc
from pyarrow import flight

from bench.keyed import scratch_folder
from frazil.model import SystemClock
from tests.clients.node import Node
from tests.conformance.cases import log, logs
from tests.conformance.clients import PROTOBUF, send_http

ROWS = int(os.environ.get("FLIGHT_ROWS", "1000000"))
TIMES = int(os.environ.get("FLIGHT_TIMES", "7"))
REQUEST_ROWS = 5000
SECONDS_MAX = 0.3
VISIBLE_S_MAX = 300
TEXTS = {
    "texts": f"SELECT time, service_name, severity_number, event_name FROM logs LIMIT {ROWS}",
    "numbers": f"SELECT _offset, _row, time_unix_nano FROM logs LIMIT {ROWS}",
}


class BareServer(flight.FlightServerBase):  # type: ignore[misc]
    """Sends batches that are in memory: what Flight itself takes."""

    def __init__(self, tables: dict[str, pa.Table]) -> None:
        self._tables = tables
        super().__init__("grpc://127.0.0.1:0")

    def do_get(self, context: Any, ticket: Any) -> Any:
        return flight.RecordBatchStream(self._tables[ticket.ticket.decode()])


@contextmanager
def filled_node(folder: Path) -> Iterator[Node]:
    """A node with the rows visible."""
    settings = ("--set", "lake.enabled=false", "--set", "query.rows_max=100000000")
    with Node(folder, *settings) as node:
        for begin in range(0, ROWS, REQUEST_ROWS):
            count = min(REQUEST_ROWS, ROWS - begin)
            body = logs(*(log(begin + at, event_name=f"event {at % 100}") for at in range(count)))
            answer = send_http(node.http_port, "/v1/logs", body, {"Content-Type": PROTOBUF})
            assert answer.status == 200, answer
        clock, deadline_ns = SystemClock(), time.monotonic_ns() + VISIBLE_S_MAX * 10**9
        with adbc.connect(f"grpc://127.0.0.1:{node.flight_port}", autocommit=True) as connection:
            while fetched(connection, "SELECT count(*) AS n FROM logs")["n"][0].as_py() < ROWS:
                assert time.monotonic_ns() < deadline_ns, "rows do not become visible"
                clock.sleep(0.5)
        yield node


def fetched(connection: adbc.Connection, text: str) -> pa.Table:
    with connection.cursor() as cursor:
        cursor.execute(text)
        return cursor.fetch_arrow_table()


def best_s(work: Callable[[], pa.Table]) -> float:
    times = []
    for _ in range(TIMES):
        begin = time.perf_counter()
        table = work()
        times.append(time.perf_counter() - begin)
        assert table.num_rows == ROWS, table.num_rows
    return round(min(times), 3)


def measured(node: Node) -> dict[str, dict[str, float]]:
    """Fetch the rows of each text from both, in turns."""
    found = {}
    with adbc.connect(f"grpc://127.0.0.1:{node.flight_port}", autocommit=True) as connection:
        tables = {name: fetched(connection, text) for name, text in TEXTS.items()}
        with (
            BareServer(tables) as server,
            flight.connect(f"grpc://127.0.0.1:{server.port}") as client,
        ):
            for name, text in TEXTS.items():
                ticket = flight.Ticket(name.encode())
                found[name] = {
                    "mib": round(tables[name].nbytes / 2**20, 1),
                    "frazil_s": best_s(partial(fetched, connection, text)),
                    "bare_s": best_s(partial(_read, client, ticket)),
                }
                print(name, found[name], flush=True)
    return found


def _read(client: Any, ticket: Any) -> pa.Table:
    return client.do_get(ticket).read_all()


def main() -> int:
    with scratch_folder() as folder, filled_node(folder / "data") as node:
        found = measured(node)
    slowest = max(each["frazil_s"] for each in found.values()) * 1_000_000 / ROWS
    is_fine = slowest <= SECONDS_MAX
    print(json.dumps({"bench": "flight", "rows": ROWS, "is_fine": is_fine, "results": found}))
    return 0 if is_fine else 1


if __name__ == "__main__":
    sys.exit(main())
