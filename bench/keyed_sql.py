"""SQL over a keyed table: without changes, with 5 % of its rows changed, and by an anti-join.

KEYED_ROWS is the number of rows (1,000,000). A query is timed from its text to its last row, in a
worker process, as users see it; the anti-join runs in this process, over the same rows in memory,
without planning twice or sending anything. Best of 40: the box may be busy. Prints one JSON line
last; exits 1 when the changes make a query slower than twice, or the anti-join is not five times
slower.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
from datafusion import SessionContext

from bench.keyed import rows_of, scratch_folder
from frazil.settings import TablesConfig
from frazil.tables import KeyedTables, Operation
from tests.query.keyed import KeyedNode, keyed_node

ROWS = int(os.environ.get("KEYED_ROWS", "1000000"))
CHANGED = ROWS // 20
BATCH_ROWS = 20_000
TIMES = 40
QUERIES = {
    "count": "SELECT count(*) FROM orders",
    "sum": "SELECT sum(amount) FROM orders",
    "group": "SELECT region, sum(amount), max(quantity) FROM orders GROUP BY region",
}
SLOWER_MAX = 2.0
ANTI_JOIN_MIN = 5.0


def best_ms(work: Callable[[], object]) -> float:
    work()
    times = []
    for _ in range(TIMES):
        begin = time.perf_counter()
        work()
        times.append((time.perf_counter() - begin) * 1000)
    return round(min(times), 2)


def write(tables: KeyedTables, ids: np.ndarray, version: int) -> None:
    for begin in range(0, len(ids), BATCH_ROWS):
        rows = rows_of(ids[begin : begin + BATCH_ROWS], version)
        tables.write("orders", Operation.UPSERT, rows)
    tables.catch_up()


def measured(node: KeyedNode) -> dict[str, float]:
    return {name: best_ms(lambda t=text: node.sql(t)) for name, text in QUERIES.items()}  # type: ignore[misc]


def anti_join(node: KeyedNode) -> dict[str, float]:
    """The same queries over all row versions, without those in a list of dead ones."""
    versions, dead, base = [], [], 0
    for part in node.tables.view("orders").partitions[0].parts:
        numbers = pa.array(np.arange(base, base + part.length))
        batch = part.batch.select(["amount", "region", "quantity"])
        versions.append(batch.append_column("row", numbers))
        if part.live is not None:
            dead.append(numbers.filter(pa.compute.invert(part.live)))
        base += part.length
    session = SessionContext()
    session.register_record_batches("versions", [versions])
    session.register_record_batches(
        "dead", [[pa.RecordBatch.from_arrays([d], ["row"]) for d in dead]]
    )
    joined = "(SELECT v.* FROM versions v LEFT ANTI JOIN dead d ON v.row = d.row) AS orders"
    return {
        name: best_ms(lambda t=text: session.sql(t.replace("orders", joined)).collect())  # type: ignore[misc]
        for name, text in QUERIES.items()
    }


def main() -> int:
    with scratch_folder() as folder, keyed_node(Path(folder), config=TablesConfig()) as node:
        node.execute(
            "CREATE TABLE orders (id BIGINT, customer TEXT, status TEXT, amount DOUBLE, "
            "quantity INT, created TIMESTAMPTZ, region TEXT, note TEXT, PRIMARY KEY (id))"
        )
        write(node.tables, np.arange(ROWS), 0)
        node.tables._find("orders").usable().folds[0].seal()
        clean = measured(node)
        changed = np.random.default_rng(7).choice(ROWS, CHANGED, replace=False)
        write(node.tables, changed, 1)
        pending = measured(node)
        assert node.sql(QUERIES["count"]) == [(ROWS,)]
        joined = anti_join(node)
    slower = {name: round(pending[name] / clean[name], 2) for name in QUERIES}
    faster = {name: round(joined[name] / pending[name], 1) for name in QUERIES}
    figures = {
        "rows": ROWS,
        "changed": CHANGED,
        "clean_ms": clean,
        "changed_ms": pending,
        "anti_join_ms": joined,
        "changed_by_clean": slower,
        "anti_join_by_changed": faster,
    }
    is_met = all(slower[name] <= SLOWER_MAX for name in ("count", "sum"))
    is_met = is_met and all(faster[name] >= ANTI_JOIN_MIN for name in ("count", "sum"))
    print(json.dumps(figures | {"is_met": is_met}))
    return 0 if is_met else 1


if __name__ == "__main__":
    sys.exit(main())
